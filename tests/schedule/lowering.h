/* Helpers of the tests of lowering: model shapes, and lowering them with the given options. */
#ifndef MGL_TESTS_SCHEDULE_LOWERING_H
#define MGL_TESTS_SCHEDULE_LOWERING_H

#include "importer/config.h"
#include "support.h"

/* Models without weights: a small one with widths that flags need, and one of a billion
 * parameters. */
typedef struct shape {
    mgl_geometry geometry;
    bool tied;
} shape;
extern const shape even, billion;

/* The graph of a shape in bf16, with 4,096 positions. Release with mgl_graph_free. */
mgl_graph *graph_of(const shape *s);

/* The same graph with extras: bits of mgl_extras. */
mgl_graph *family_of(const shape *s, unsigned extras);

/* A model without weights with that config, but two layers and 32,768 positions. Release with
 * mgl_graph_free. */
mgl_graph *open_graph(mgl_config *config);

/* Parses a target's name. */
mgl_target target_of(const char *name);

/* The default config with counters. */
mgl_schedule_config preset(void);

/* Lowers in bf16 for sm_90a with this number of queues, for two sequences or the given number. */
mgl_program *lowered(const mgl_graph *graph, int queues, const mgl_schedule_config *config,
                     int capacity);
mgl_program *lowered_for(int sequences, const mgl_graph *graph, int queues,
                         const mgl_schedule_config *config, int capacity);

/* Whether a program exchanges flags. */
bool has_flags(const mgl_program *p);

#endif
