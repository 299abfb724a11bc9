/*
 * Device record: what `bench` measured on a device whose costs are not in schedule/cost/costs.def.
 * It is one JSON file per device, in the form of tests/tools/bench/record.sh, from which fit_costs
 * computes costs. The path is megalith/devices/NAME.json under XDG_DATA_HOME, or else under
 * ~/.local/share. A record is written once; remove the file to record again.
 */
#ifndef MGL_EVAL_DEVICE_RECORD_H
#define MGL_EVAL_DEVICE_RECORD_H

#include "base/error.h"
#include "base/text.h"

/* Appends the path of a device's record. NAME is the device name, with '-' for every character
 * other than letters, digits, '_', '-' and '.', and for a leading '.'. Returns false if no data
 * folder is known or the device has no name. */
bool mgl_device_record_path(const char *device, mgl_text *out);

/* Whether a record should be written: the device's costs are unknown, the data folder is known, and
 * the file does not exist. */
mgl_status mgl_device_record_wanted(const char *device, bool *wanted, mgl_error *err);

/* Writes the record atomically. */
mgl_status mgl_device_record_write(const char *device, const mgl_text *json, mgl_error *err);

#endif
