/*
 * Fixture of the machines' tests: random models without files, programs for them, and machines for
 * the programs. Failures abort the test with a message.
 */
#ifndef MGL_TESTS_VM_FIXTURE_H
#define MGL_TESTS_VM_FIXTURE_H

#include <check.h>

#include "importer/graph.h"
#include "schedule/schedule.h"
#include "vm/vm.h"

#define ok(call, err) ck_assert_msg((call) == MGL_OK, "%s: %s", (err).where, (err).message)

/* Common geometries. */
extern const mgl_geometry small_model; /* hidden 64, 2 layers, 4:2 heads of 16, ffn 96, vocab 75 */
extern const mgl_geometry odd_model;   /* hidden 72, ffn 500, vocab 1213, 3:1 heads of 32 */
extern const mgl_geometry tiny_model;  /* hidden 32, 2 layers, 2:1 heads of 16, ffn 40, vocab 41 */

/* A graph with random weights of `dtype` (a function of seed, tensor, row and column), released by
 * mgl_graph_free. */
mgl_graph *random_graph(const mgl_geometry *geometry, int max_positions, bool tied, mgl_dtype dtype,
                        unsigned seed);

/* Extras: biases of all products, and norms of q and k. */
enum {
    ALL_EXTRAS = MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS | MGL_EXTRA_QK_NORM
};

/* The same for a model with extras: bits of mgl_extras. */
mgl_graph *random_family(const mgl_geometry *geometry, unsigned extras, int max_positions,
                         bool tied, mgl_dtype dtype, unsigned seed);

/* Sets all values of one row of a tensor of a random graph. */
void spoil_row(mgl_graph *graph, const char *tensor, int64_t row, float value);

typedef struct fixture_options {
    int queues; /* 0: 1 */
    mgl_dtype dtype;
    int capacity;     /* 0: max_positions */
    int sequences;    /* 0: 1 */
    int rows;         /* 0: the config's default */
    int splits;       /* 0: chosen by lowering */
    int exchange;     /* 0: chosen by lowering; 1 counters, 2 flags */
    int second_rows;  /* rows of an epoch of the second list; 0: no second list */
    int gamma_scaled; /* 0: chosen by lowering; MGL_GAMMA_... */
    int merge;        /* likewise; MGL_MERGE_... */
    int share;        /* likewise; positions */
    int unsplit;      /* likewise; positions, 1: no unsplit rows */
    bool penalties;
} fixture_options;

/* Lowers a program for the graph for the CPU. */
mgl_program *fixture_program(const mgl_graph *graph, const fixture_options *options);

/* Opens a machine for the validated program. */
mgl_vm *fixture_vm(const mgl_program *program, const mgl_graph *graph, bool plain);

/* Generates greedy tokens (count) of one prompt on a machine opened for it. */
void fixture_greedy(const mgl_graph *graph, const fixture_options *options, bool plain,
                    const int32_t *prompt, int prompt_count, int32_t *tokens, int count);

/* Runs a suite of one case. Returns the exit code of the test. */
int fixture_main(const char *name, TCase *tests);

#endif
