/*
 * The steps of the pipeline that mgl_model_open and the verbs of the command line share: which
 * machine, and which program for it. Implemented in api/model.c and pipeline.c.
 */
#ifndef MGL_API_PIPELINE_H
#define MGL_API_PIPELINE_H

#include "schedule/schedule.h"
#include "vm/vm.h"

/* What the machines read of a switch; NULL for NULL. */
const atomic_int *mgl_cancel_flag(const mgl_cancel *cancel);

/* What `--device` means: a machine of which kind, and what lowering must know of it. */
typedef struct mgl_device {
    mgl_vm_kind kind;
    int device; /* ordinal of the GPU */
    mgl_target target;
    double driver_s; /* starting the GPU's driver, and asking it */
    char name[128];  /* of the device, "NVIDIA H200" or "cpu"; "" of one that need not be there */
} mgl_device;

/* "auto" (or NULL: the first usable GPU, or else the CPU), "cpu", "cuda" or "cuda:1". */
mgl_status mgl_device_find(const char *device, mgl_device *out, mgl_error *err);

/* What to lower for: "sm_90a:132", "cpu:1"; NULL or "live": the machine that "auto" finds. Anything
 * else is MGL_USAGE. */
mgl_status mgl_target_find(const char *target, mgl_target *out, mgl_error *err);
/* The same with the machine's name, where it is known. */
mgl_status mgl_target_find_device(const char *target, mgl_device *out, mgl_error *err);

struct mgl_image; /* vm/image.h */

/* The machine for a compiled model: "auto" (or NULL) is the CPU for one that was compiled for it,
 * and a GPU needs no compiler where the file has its kernel. */
mgl_status mgl_device_find_for(const struct mgl_image *image, const char *device, mgl_device *out,
                               mgl_error *err);

/* What shapes a lowered program; zero means the default of each field. */
typedef struct mgl_lower_request {
    const char *dtype;       /* "auto" or NULL: the checkpoint's, but f32 for a CPU */
    const char *config;      /* path of a ScheduleConfig */
    const char *config_text; /* a ScheduleConfig, in its place */
    int32_t rows;            /* of an epoch, in place of the config's */
    int32_t capacity;        /* positions; more than the model has is an error */
    int32_t wanted;    /* with capacity 0: as many, but no more than the model has; 0: 4,096 */
    int32_t sequences; /* of a launch; 0: 1 */
    bool fewer;        /* with fewer sequences if the config has no room for so many */
    int32_t prompt;    /* tokens of the longest prompt; 0: few, or not known */
    int32_t reply;     /* tokens of the longest reply behind it; 0: not known */
    bool penalties;    /* tokens can have penalties */
    bool unproved;     /* leave the proof to mgl_vm_open, or whoever else does it next */
    /* Of mgl_pipeline_lower_tuned alone: */
    const char *device; /* name of the one it is for; NULL or "": none has a tuned entry */
    bool no_tuned;      /* the default, whatever there is */
    bool exact;         /* an entry may not have more positions than were asked for */
} mgl_lower_request;

/* A schedule says by itself what lowering would be told: MGL_USAGE when both are given. */
mgl_status mgl_pipeline_check_schedule(const char *schedule, const char *config, const char *dtype,
                                       int32_t capacity, mgl_error *err);

/* What the request means for this graph and target. */
mgl_status mgl_pipeline_options(const mgl_graph *graph, const mgl_target *target,
                                const mgl_lower_request *request, mgl_lower_options *out,
                                mgl_error *err);
/* Ends with the validator: MGL_REJECTED with its first diagnostic where a config asks for what can
 * not be run. */
mgl_status mgl_pipeline_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_request *request, mgl_program **out, mgl_error *err);

/* ---- tuned entries ------------------------------------------------------------------------------
 */

enum { MGL_TUNED_NOTE = 1024 };

typedef struct mgl_tuned_report {
    int32_t capacity;          /* positions that were asked for; the program may have more */
    char note[MGL_TUNED_NOTE]; /* what is unusual about the checkpoint, and entries that were left
                                  out, and why, one a line; "" for none */
} mgl_tuned_report;

/* Lowers with the first tuned entry that is for this (schedule/tuned.h), or by default where there
 * is none, a config was given or the request has no device. Where the request leaves the capacity
 * open, an entry may be taken at mgl_tuned_step of it. An entry that does not replay, or makes what
 * the validator or the device's machine refuses, is left out with a note: never an error. */
mgl_status mgl_pipeline_lower_tuned(const mgl_graph *graph, const mgl_target *target,
                                    const mgl_lower_request *request, mgl_program **out,
                                    mgl_tuned_report *report, mgl_error *err);
/* Adds what is unusual about the checkpoint, and about a cache of so many positions, to the
 * report's notes. */
void mgl_tuned_report_describe(mgl_tuned_report *report, const mgl_graph *graph, int capacity);
/* Adds a line to the report: the entry is left out for this reason. */
void mgl_tuned_report_add(mgl_tuned_report *report, const char *entry, const mgl_error *why);

#endif
