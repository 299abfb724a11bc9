/* Helpers of the tests of lowering: models, and lowering them. */
#ifndef MGL_TESTS_SCHEDULE_LOWERING_H
#define MGL_TESTS_SCHEDULE_LOWERING_H

#include "importer/config.h"
#include "support.h"

/* A model without weights: a small one whose widths flags are possible with, and one of a billion.
 */
typedef struct shape {
    mgl_geometry geometry;
    bool tied;
} shape;
extern const shape even, billion;

/* The graph of a shape in bf16, of 4,096 positions. Release with mgl_graph_free. */
mgl_graph *graph_of(const shape *s);

/* The same with bits of mgl_extras. */
mgl_graph *family_of(const shape *s, unsigned extras);

/* A model without weights of that config, but of two layers and 32,768 positions. Likewise. */
mgl_graph *open_graph(mgl_config *config);

/* The target of that name. */
mgl_target target_of(const char *name);

/* The default config, but with counters. */
mgl_schedule_config preset(void);

/* Lowers in bf16 for sm_90a with so many queues, for two sequences or for as many as are given. */
mgl_program *lowered(const mgl_graph *graph, int queues, const mgl_schedule_config *config,
                     int capacity);
mgl_program *lowered_for(int sequences, const mgl_graph *graph, int queues,
                         const mgl_schedule_config *config, int capacity);

/* Whether a program exchanges flags. */
bool has_flags(const mgl_program *p);

#endif
