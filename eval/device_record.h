/*
 * The record of a device: what `bench` measured when it met one whose costs are not in
 * schedule/cost/costs.def. One JSON file a device, as tests/tools/bench/record.sh writes results,
 * so that fit_costs makes costs of it: megalith/devices/NAME.json of XDG_DATA_HOME, or else of
 * ~/.local/share. It is written once; whoever wants another removes it.
 */
#ifndef MGL_EVAL_DEVICE_RECORD_H
#define MGL_EVAL_DEVICE_RECORD_H

#include "base/error.h"
#include "base/text.h"

/* Appends the path of a device's record. In NAME, what is no letter, digit, '_', '-' or '.' is a
 * '-', and so is a '.' in front. False where nobody says where records are kept, and
 * for a device without a name. */
bool mgl_device_record_path(const char *device, mgl_text *out);

/* Whether there is to be one: the device's costs are unknown, there is a place for it, and nothing
 * stands there. */
mgl_status mgl_device_record_wanted(const char *device, bool *wanted, mgl_error *err);

/* Writes it, whole or not at all. */
mgl_status mgl_device_record_write(const char *device, const mgl_text *json, mgl_error *err);

#endif
