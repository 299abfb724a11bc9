/*
 * Lowering of a graph to a validated program for a device, with a tuned entry if one fits: the step
 * that mgl_model_open shares with mgl_model_compile, the planners and the verbs of the command
 * line.
 */
#ifndef MGL_VM_PIPELINE_PIPELINE_H
#define MGL_VM_PIPELINE_PIPELINE_H

#include "schedule/schedule.h"
#include "vm/pipeline/device.h"

/* The inputs of lowering. Zero selects the default of each field. */
typedef struct mgl_lower_request {
    const char *dtype;       /* "auto" or NULL: the dtype of the checkpoint, or f32 on a CPU */
    const char *config;      /* path of a ScheduleConfig */
    const char *config_text; /* the text of a ScheduleConfig, instead of `config` */
    int32_t rows;            /* rows of an epoch, instead of the config's */
    int32_t capacity;        /* positions; an error if the model has fewer */
    int32_t wanted;    /* if capacity is 0: positions, limited to those of the model; 0: 4,096 */
    int32_t sequences; /* sequences of a launch; 0: 1 */
    bool fewer;        /* lower for fewer sequences if the config does not fit `sequences` */
    int32_t prompt;    /* tokens of the longest prompt; 0: few or unknown */
    int32_t reply;     /* tokens of the longest reply after it; 0: unknown */
    bool penalties;    /* requests may use penalties */
    bool unproved;     /* skip the proof here: mgl_vm_open or the caller does it */
    /* Only for mgl_pipeline_lower_tuned: */
    const char *device; /* name of the device; NULL or "": do not use tuned entries */
    bool no_tuned;      /* lower by default, even if a tuned entry fits */
    bool exact;         /* reject entries with more positions than requested */
} mgl_lower_request;

/* A schedule fixes config, dtype and capacity. MGL_USAGE if one of them is given too. */
mgl_status mgl_pipeline_check_schedule(const char *schedule, const char *config, const char *dtype,
                                       int32_t capacity, mgl_error *err);

/* Converts the request to the options of lowering for this graph and target. */
mgl_status mgl_pipeline_options(const mgl_graph *graph, const mgl_target *target,
                                const mgl_lower_request *request, mgl_lower_options *out,
                                mgl_error *err);
/* Lowers the request and validates the program. MGL_REJECTED with the first diagnostic if the
 * validator rejects the program. */
mgl_status mgl_pipeline_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_request *request, mgl_program **out, mgl_error *err);

/* Checks whether an H100 (sm_90a:132) can run the model: lowers the graph with the default options
 * and applies the checks of the CUDA machine (mgl_check_machine). Needs no device. MGL_BAD_INPUT
 * with the reason if the H100 cannot run the model; MGL_NO_MEMORY. */
mgl_status mgl_pipeline_check_gpu(const mgl_graph *graph, mgl_error *err);

/* ---- tuned entries --------------------------------------------------------------------------- */

enum { MGL_TUNED_NOTE = 1024 };

typedef struct mgl_tuned_report {
    int32_t capacity; /* requested positions; the program may have more */
    /* Warnings about the checkpoint, and each tuned entry that was left out with the reason, one
     * per line; "" for none. */
    char note[MGL_TUNED_NOTE];
} mgl_tuned_report;

/* Lowers with the first tuned entry that fits the model, the device and the capacity
 * (schedule/tuned/tuned.h). Lowers by default if no entry fits, a config is given, or the request
 * names no device. If the request leaves the capacity open, an entry for mgl_tuned_step of the
 * capacity fits too. An entry is left out with a note, not with an error, if it does not replay or
 * if the validator or the device's machine rejects its program. */
mgl_status mgl_pipeline_lower_tuned(const mgl_graph *graph, const mgl_target *target,
                                    const mgl_lower_request *request, mgl_program **out,
                                    mgl_tuned_report *report, mgl_error *err);
/* Adds to the notes: warnings about the checkpoint, and about a cache of `capacity` positions. */
void mgl_tuned_report_describe(mgl_tuned_report *report, const mgl_graph *graph, int capacity);
/* Adds a note: the entry was left out for this reason. */
void mgl_tuned_report_add(mgl_tuned_report *report, const char *entry, const mgl_error *why);

#endif
