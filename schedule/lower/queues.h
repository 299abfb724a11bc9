/*
 * The queues of each step: how many run its products, and which ones run attention and merges. Used
 * by choose.c.
 *
 * Number of queues: all queues share the memory bandwidth, so the time of a step is the largest
 * share times the number of queues with a share. 128 of 132 queues with equal shares are faster
 * than 132 queues of which some have one row group more. With flags, all steps use the same number
 * of queues, because the residual stays with its owner. If layers are small, queues have roles
 * instead (roles.h).
 */
#ifndef MGL_SCHEDULE_LOWER_QUEUES_H
#define MGL_SCHEDULE_LOWER_QUEUES_H

#include "schedule/lower/choose.h"

/* Whether the keys and values of all sequences are so few that one queue for each kv head
 * suffices. */
bool mgl_queues_suffice(const mgl_geometry *geometry, const mgl_lower_options *options);

/* Chooses the number of queues of the steps that the config leaves open, for flags. */
void mgl_queues_deal(const mgl_geometry *geometry, const mgl_target *target,
                     const mgl_lower_options *options, const mgl_schedule_config *config,
                     mgl_choices *out);

/* The same for counters: all queues. */
void mgl_queues_deal_all(const mgl_target *target, const mgl_schedule_config *config,
                         mgl_choices *out);

/* Chooses roles, and the queues of attention and of merges, whose results have type `merged`.
 * `out` has flags, splits and the ring. */
void mgl_queues_place(const mgl_geometry *geometry, const mgl_target *target,
                      const mgl_lower_options *options, const mgl_schedule_config *config,
                      mgl_dtype merged, mgl_choices *out);

/* Places the attention of unsplit rows as attention that is not split: one queue for each kv head,
 * if possible without other work. */
void mgl_queues_place_unsplit(const mgl_geometry *geometry, const mgl_target *target,
                              mgl_choices *out);

/* If attention of one queue for each kv head is on queues that run products, these queues get no
 * qkv. On an H200 a queue that runs qkv begins attention about 1.4 us later than a queue that waits
 * for its input. If the other queues would need much longer for qkv, nothing changes. With several
 * sequences, rows are unsplit for few positions, which is not worth it. `config` has `second_rows`;
 * `out` has everything else. */
void mgl_queues_spare(const mgl_graph *graph, const mgl_target *target,
                      const mgl_lower_options *options, const mgl_schedule_config *config,
                      mgl_choices *out);

#endif
