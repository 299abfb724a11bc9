/*
 * Helpers of the validator's tests: small models, their lowered programs, copies with a part left
 * out, and running a suite.
 */
#ifndef MGL_TESTS_VALIDATOR_SUPPORT_H
#define MGL_TESTS_VALIDATOR_SUPPORT_H

#include "base/memory.h"
#include "schedule/schedule.h"
#include "validator/validator.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The model of the text cases: hidden 16, 1 layer, heads 2/1 of 8, ffn 24, vocab 40, eps 1e-5, 64
 * positions, its own head. With more layers for others. */
mgl_graph *tiny_graph(int layers);
/* A model of any geometry. */
mgl_graph *make_graph(const mgl_geometry *geometry, bool tied, mgl_dtype dtype);

/* Lowers the graph for sm_90a with this number of queues and splits (0: automatic), 4 rows, and 2
 * sequences of 32 positions. */
mgl_program *lowered(const mgl_graph *graph, int queues, int splits);
/* The same with a given exchange: 1 counters, 2 flags. */
mgl_program *lowered_with(const mgl_graph *graph, int queues, int splits, int exchange,
                          mgl_dtype dtype);

/* programs/flags_<splits>.mls: three queues that exchange everything by flags, of the model below:
 * 2 layers, hidden 16, heads 4/2 of 8, ffn 24, vocab 40. */
mgl_program *lowered_with_penalties(const mgl_graph *graph, int queues);
mgl_program *flags_program(int splits);
mgl_graph *flags_graph(void);

/* The edit of a copy: one piece is left out; or a task is doubled, or exchanged with the next task
 * of its queue. */
enum piece {
    NO_PIECE,
    PIECE_TASK,
    PIECE_WAIT,
    PIECE_SIGNAL,
    PIECE_REGION,
    PIECE_SEGMENT,
    DOUBLE_TASK,
    SWAP_TASK
};
mgl_program *copy_without(const mgl_program *program, enum piece piece, int index);

/* Validates a program; the test fails if memory runs out. Release with mgl_verdict_clear. */
mgl_verdict verdict_of(const mgl_program *program, const mgl_graph *graph);
mgl_verdict strict_verdict_of(const mgl_program *program, const mgl_graph *graph);
/* Whether the verdict has a diagnostic with the code. */
bool has_code(const mgl_verdict *verdict, int code);
/* "MG203 MG301", each code once, in the order of their first diagnostics; "accept". */
const char *codes_of(const mgl_verdict *verdict, char *to, size_t size);

int run_suite(Suite *suite);

#endif
