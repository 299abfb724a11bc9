/*
 * Declares the steps that mgl_model_open shares with mgl_model_compile, the planners and the verbs
 * of the command line: choosing a device and a target, and lowering a graph to a program, with a
 * tuned entry if one fits. api/model.c implements the devices, api/pipeline.c the lowering.
 */
#ifndef MGL_API_PIPELINE_H
#define MGL_API_PIPELINE_H

#include "schedule/schedule.h"
#include "vm/vm.h"

/* The word of the switch that the machines poll; NULL if `cancel` is NULL. */
const atomic_int *mgl_cancel_flag(const mgl_cancel *cancel);

/* The meaning of `--device`: the kind of machine, and the target that lowering needs. */
typedef struct mgl_device {
    mgl_vm_kind kind;
    int device; /* ordinal of the GPU */
    mgl_target target;
    double driver_s; /* time to start the GPU driver and query it */
    char name[128];  /* "NVIDIA H200" or "cpu"; "" if it is unknown or not on this host */
} mgl_device;

/* `device` is "auto" or NULL (the first usable GPU, or else the CPU), "cpu", "cuda" or "cuda:N".
 * MGL_USAGE for any other text. */
mgl_status mgl_device_find(const char *device, mgl_device *out, mgl_error *err);

/* The target to lower for: "sm_90a:132" or "cpu:1"; NULL or "live" is the machine that "auto"
 * finds. MGL_USAGE for any other text. */
mgl_status mgl_target_find(const char *target, mgl_target *out, mgl_error *err);
/* Like mgl_target_find, but also sets the kind of machine, and its name if the name is known. */
mgl_status mgl_target_find_device(const char *target, mgl_device *out, mgl_error *err);

struct mgl_image; /* vm/image.h */

/* Finds the machine for a compiled model (NULL: for a folder). "auto" (or NULL) is the CPU if the
 * model was compiled for a CPU. A GPU needs no compiler if the file contains its kernel. */
mgl_status mgl_device_find_for(const struct mgl_image *image, const char *device, mgl_device *out,
                               mgl_error *err);

/* The inputs of lowering. Zero selects the default of each field. */
typedef struct mgl_lower_request {
    const char *dtype;       /* "auto" or NULL: the dtype of the checkpoint, or f32 on a CPU */
    const char *config;      /* path of a ScheduleConfig */
    const char *config_text; /* the text of a ScheduleConfig, instead of `config` */
    int32_t rows;            /* rows of an epoch, instead of the config's */
    int32_t capacity;        /* positions; an error if the model has fewer */
    int32_t wanted;    /* if capacity is 0: positions, limited to those of the model; 0: 4,096 */
    int32_t sequences; /* sequences of a launch; 0: 1 */
    bool fewer;        /* lower for fewer sequences if the config does not fit so many */
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

/* ---- tuned entries --------------------------------------------------------------------------- */

enum { MGL_TUNED_NOTE = 1024 };

typedef struct mgl_tuned_report {
    int32_t capacity; /* requested positions; the program may have more */
    /* Warnings about the checkpoint, and each tuned entry that was left out with the reason, one
     * per line; "" for none. */
    char note[MGL_TUNED_NOTE];
} mgl_tuned_report;

/* Lowers with the first tuned entry that fits the model, the device and the capacity
 * (schedule/tuned.h). Lowers by default if no entry fits, a config is given, or the request names
 * no device. If the request leaves the capacity open, an entry for mgl_tuned_step of the capacity
 * fits too. An entry is left out with a note, not with an error, if it does not replay or if the
 * validator or the device's machine rejects its program. */
mgl_status mgl_pipeline_lower_tuned(const mgl_graph *graph, const mgl_target *target,
                                    const mgl_lower_request *request, mgl_program **out,
                                    mgl_tuned_report *report, mgl_error *err);
/* Adds to the notes: warnings about the checkpoint, and about a cache of `capacity` positions. */
void mgl_tuned_report_describe(mgl_tuned_report *report, const mgl_graph *graph, int capacity);
/* Adds a note: the entry was left out for this reason. */
void mgl_tuned_report_add(mgl_tuned_report *report, const char *entry, const mgl_error *why);

#endif
