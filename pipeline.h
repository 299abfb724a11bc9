/*
 * The steps of the pipeline that mgl_model_open and the verbs of the command line share: which
 * machine, and which program for it. Implemented in megalith.c.
 */
#ifndef MGL_PIPELINE_H
#define MGL_PIPELINE_H

#include "schedule/schedule.h"
#include "vm/vm.h"

/* A machine and what lowering must know of it. */
typedef struct mgl_machine {
    mgl_vm_kind kind;
    int device; /* ordinal of the GPU */
    mgl_target target;
} mgl_machine;

/* "auto" (or NULL: the first usable GPU, or else the CPU), "cpu", "cuda" or "cuda:1". */
mgl_status mgl_machine_find(const char *device, mgl_machine *out, mgl_error *err);

/* What shapes a lowered program; zero means the default of each field. */
typedef struct mgl_lower_request {
    const char *dtype;  /* "auto" or NULL: the checkpoint's, but f32 for a CPU */
    const char *config; /* path of a ScheduleConfig */
    int32_t rows;       /* of an epoch, in place of the config's */
    int32_t capacity;   /* positions; more than the model has is an error */
    int32_t wanted;     /* with capacity 0: as many, but no more than the model has; 0: 4,096 */
} mgl_lower_request;

mgl_status mgl_pipeline_lower(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_request *request, mgl_program **out, mgl_error *err);

#endif
