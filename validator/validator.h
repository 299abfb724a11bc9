/*
 * The validator: proves that a program can not hang, race, leave its memory, read what nobody
 * wrote or compute something else than the graph, for all epochs and all positions below capacity.
 * Separate and pure: it knows the program, the list of ops and the graph, needs no knowledge of
 * how the program was made, never raises, and never skips a check because the program is large.
 */
#ifndef MGL_VALIDATOR_VALIDATOR_H
#define MGL_VALIDATOR_VALIDATOR_H

#include "schedule/program.h"

typedef struct mgl_diagnostic {
    int code;       /* 203 for MG203 */
    int line;       /* of the schedule text; 0 when the program was lowered */
    int task;       /* index of the task, -1 for none */
    char *message;  /* owned by the verdict */
    char **witness; /* (witness_count) lines: the cycle, the two accesses, the uncovered range */
    int witness_count;
    bool warning; /* of a later step, about a program that is accepted; the validator has none */
} mgl_diagnostic;

/* The number formats of a program, as sets: bit 1 << mgl_weight_format for each of the weights',
 * else bit 1 << mgl_dtype. All empty where a fault was found before they were looked at. */
typedef struct mgl_formats {
    unsigned checkpoint; /* of the model's tensors that the program names; empty without a graph */
    unsigned weights;    /* of the matrices on tapes */
    unsigned embedding;  /* of the embedding table */
    unsigned exchange;   /* of the activations, which queues exchange */
    unsigned cache;      /* of keys and values */
    bool lossy; /* one can not hold each number of the checkpoint's; false without a graph */
} mgl_formats;
enum { MGL_FORMATS_TEXT = 48 };
/* "f32 and bf16", or "" for the empty set; of the weights' formats, and of dtypes. Return `to`. */
const char *mgl_formats_print_weights(unsigned formats, char to[MGL_FORMATS_TEXT]);
const char *mgl_formats_print(unsigned dtypes, char to[MGL_FORMATS_TEXT]);

/* Zero-initialise; release with mgl_verdict_clear. */
typedef struct mgl_verdict {
    bool accepted;
    bool meaning_checked; /* a graph was given and the check was reached */
    mgl_formats formats;
    mgl_diagnostic *diagnostics; /* (count) at most MGL_MAX_DIAGNOSTICS; empty when accepted, but
                                    for warnings that a later step adds */
    int count;
    int tasks, counters;
    int epochs_unrolled; /* how many epochs the proof looks at explicitly */
    double ms;
} mgl_verdict;
enum { MGL_MAX_DIAGNOSTICS = 64 };

/* Checks the program; with a graph also its meaning. MGL_OK whatever the verdict; fails only when
 * memory runs out (the verdict is then `rejected`). */
mgl_status mgl_validator_check(const mgl_program *program, const mgl_graph *graph, mgl_verdict *out,
                               mgl_error *err);
/* The same, with a graph, for a caller who wants no format that loses: MG708. */
mgl_status mgl_validator_check_strict(const mgl_program *program, const mgl_graph *graph,
                                      mgl_verdict *out, mgl_error *err);
void mgl_verdict_clear(mgl_verdict *verdict);

/* A code's entry of the one list of diagnostics (validator/codes.def): what it means, an example,
 * how to mend it. NULL for an unknown code. Static storage. */
typedef struct mgl_code_info {
    int code;
    const char *title, *meaning, *example, *remedy;
} mgl_code_info;
const mgl_code_info *mgl_validator_explain(int code);
/* The list, in order of codes. */
const mgl_code_info *mgl_validator_codes(int *count);

#endif
