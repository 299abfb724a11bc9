/*
 * What lowering decides before it emits a task: how edges are made, which queues work on which
 * step, splits, and the shape of the stream.
 */
#ifndef MGL_SCHEDULE_LOWER_CHOOSE_H
#define MGL_SCHEDULE_LOWER_CHOOSE_H

#include "schedule/schedule.h"

/* From which level of the knob `narrow` on values are exchanged in 16 bits. */
enum { MGL_EXCHANGE_FFN = 1, MGL_EXCHANGE_ATTENTION, MGL_EXCHANGE_RESIDUAL };

typedef struct mgl_choices {
    bool flags;       /* edges inside an epoch are flags rather than counters */
    int narrow;       /* what is exchanged in 16 bits then */
    int rows;         /* of an epoch */
    int many;         /* of an epoch of the second list; 0: there is none */
    bool weighed;     /* its queues exchange weighed values, */
    int warpgroups;   /* who multiplies them: see the knob; 0: warpgroups where they can */
    int splits;       /* of attention */
    int share;        /* positions for which one more of them is used; 0: all are */
    bool merges_in_o; /* o merges them, */
    int merged_heads; /* or tasks of so many heads each, of queues `merge` */
    struct {
        int first, count; /* queues [first, first + count) */
    } queues[MGL_STEP_COUNT], merge;
    mgl_exec exec;
} mgl_choices;

/* Where a config leaves `rows` and `many` to lowering, and there are more sequences than a single
 * list has fast rows for: a second list, if the target and the model can have one that is faster,
 * behind a first one all of whose rows are fast. So for one sequence whose prompt is long: the
 * list reads it many rows an epoch, and each token of the reply takes a little longer beside it.
 * Else the config stays as it is. */
void mgl_schedule_fill_second(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, mgl_schedule_config *config);

/* MGL_BAD_INPUT: what the config asks for does not go with the model, the target or itself. */
mgl_status mgl_schedule_choose(const mgl_graph *graph, const mgl_target *target,
                               const mgl_lower_options *options, const mgl_schedule_config *config,
                               mgl_choices *out, mgl_error *err);

/* Row groups of that many weight rows. */
int64_t mgl_row_groups(int64_t rows);

/* Row groups that a step streams: what is dealt to its queues. Attention has none. */
int64_t mgl_step_groups(const mgl_geometry *geometry, mgl_step step);

/* Columns of such a row group's rows; gate's and up's together. */
int64_t mgl_step_columns(const mgl_geometry *geometry, mgl_step step);

/* Heads that one task merges on a queue that has other tasks of the layer, no more than a kv head
 * has, though they may be of two: as many as its warps merge at once, so that no warp is left with
 * a second one while o waits. Where that would cut a granule of flags, of a result of `dtype`, as
 * many as a kv head has. */
int mgl_merged_heads(const mgl_geometry *geometry, const mgl_exec *exec, bool flags,
                     mgl_dtype dtype);

#endif
