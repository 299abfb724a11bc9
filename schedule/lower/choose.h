/*
 * The decisions of lowering before it emits tasks: kind of edges, queues of each step, splits, and
 * the shape of the stream. choose.c fills in every value that a ScheduleConfig leaves open (0).
 * Called by lower.c; declare.c, the moves and the proposers use the helpers.
 */
#ifndef MGL_SCHEDULE_LOWER_CHOOSE_H
#define MGL_SCHEDULE_LOWER_CHOOSE_H

#include "schedule/schedule.h"

/* The exchange precision (knob `exchange_precision`) from which each kind of value is exchanged in
 * 16 bits. */
enum { MGL_EXCHANGE_FFN = 1, MGL_EXCHANGE_ATTENTION, MGL_EXCHANGE_RESIDUAL };

typedef struct mgl_choices {
    bool flags;             /* edges inside an epoch are flags rather than counters */
    int exchange_precision; /* exchange precision with flags: which values have 16 bits */
    int rows;               /* rows of an epoch */
    int second_rows;        /* rows of an epoch of the second list; 0: no second list */
    bool gamma_scaled;      /* queues exchange gamma-scaled values */
    int warpgroups;         /* as the knob: MGL_WARPGROUPS_...; 0: warpgroups if all products accept
                               them */
    int splits;             /* splits of attention */
    int share;              /* positions for each further split in use; 0: all splits are used */
    int unsplit;            /* positions of a sequence up to which its attention is not split; 0:
                               the program has no unsplit rows. Their attention is on queues
                               `unsplit_at` */
    bool merges_in_o;       /* o merges the splits, */
    int merged_heads;       /* or merge tasks of this many heads each, on queues `merge` */
    struct {
        int first, count; /* queues [first, first + count) */
    } queues[MGL_STEP_COUNT], merge, unsplit_at;
    mgl_exec exec;
} mgl_choices;

/* Adds a second list to a config that leaves `rows` and `second_rows` open. Many sequences: if a
 * single list has no fast rows for all of them, and target and model allow a faster second list,
 * the first list is limited to fast rows. One sequence with a long prompt: the second list reads
 * the prompt with many rows an epoch, at the cost of slightly slower tokens of the reply. Otherwise
 * the config is unchanged. */
void mgl_schedule_fill_second(const mgl_graph *graph, const mgl_target *target,
                              const mgl_lower_options *options, mgl_schedule_config *config);

/* MGL_BAD_INPUT if the config conflicts with the model, the target or itself. */
mgl_status mgl_schedule_choose(const mgl_graph *graph, const mgl_target *target,
                               const mgl_lower_options *options, const mgl_schedule_config *config,
                               mgl_choices *out, mgl_error *err);

/* Row groups of `rows` weight rows. */
int64_t mgl_row_groups(int64_t rows);

/* Row groups of a step, which are distributed over its queues. Attention has none. */
int64_t mgl_step_groups(const mgl_geometry *geometry, mgl_step step);

/* Columns of one row of such a row group; gate and up count together. */
int64_t mgl_step_columns(const mgl_geometry *geometry, mgl_step step);

/* Heads that one merge task processes on a queue with other tasks of the layer: at most the
 * query heads of a kv head, though they may belong to two kv heads. The count equals what the
 * warps merge at once, so that no warp does a second head while o waits. If that would split a
 * flag granule of a result of `dtype`, the count is all query heads of a kv head. */
int mgl_merged_heads(const mgl_geometry *geometry, const mgl_exec *exec, bool flags,
                     mgl_dtype dtype);

#endif
