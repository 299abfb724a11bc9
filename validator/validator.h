/*
 * The validator: a static verifier of programs. It proves that a program cannot deadlock, race,
 * leave its memory, read unwritten data or compute something other than the graph. The proof holds
 * for all epochs and all positions below capacity. The input is a program and optionally a graph,
 * the output a verdict with diagnostics. api/, vm/, autotune/ and cli/ call the validator.
 *
 * The verdict is a pure function of the program, the list of ops and the graph. The validator needs
 * no knowledge of how the program was made, and never skips a check because the program is large.
 */
#ifndef MGL_VALIDATOR_VALIDATOR_H
#define MGL_VALIDATOR_VALIDATOR_H

#include "schedule/program.h"

typedef struct mgl_diagnostic {
    int code;       /* 203 for MG203 */
    int line;       /* line of the schedule text; 0 if the program was lowered */
    int task;       /* index of the task; -1: none */
    char *message;  /* owned by the verdict */
    char **witness; /* (witness_count) lines: the cycle, the two accesses, the uncovered range */
    int witness_count;
    bool warning; /* added by a later step to an accepted program; the validator adds no warnings */
} mgl_diagnostic;

/* The number formats of a program, as bit sets: bit 1 << mgl_weight_code for the weights, bit 1
 * << mgl_dtype for the others. All are empty if an earlier pass found a fault. */
typedef struct mgl_formats {
    unsigned checkpoint; /* of the model's tensors that the program names and that are not
                            quantized; empty without a graph */
    unsigned weights;    /* of the matrices on tapes */
    unsigned embedding;  /* of the embedding table */
    unsigned exchange;   /* of the activations that queues exchange */
    unsigned cache;      /* of keys and values */
    bool lossy; /* some format cannot hold every number of the checkpoint's format; false without
                   a graph */
} mgl_formats;
enum { MGL_FORMATS_TEXT = 64 };
/* Print the set as "f32 and bf16", or "" if it is empty: weight formats, and dtypes. Return `to`.
 */
const char *mgl_formats_print_weights(unsigned formats, char to[MGL_FORMATS_TEXT]);
const char *mgl_formats_print(unsigned dtypes, char to[MGL_FORMATS_TEXT]);

/* Zero-initialize; release with mgl_verdict_clear. */
typedef struct mgl_verdict {
    bool accepted;
    bool meaning_checked; /* a graph was given and the meaning pass ran */
    mgl_formats formats;
    mgl_diagnostic *diagnostics; /* (count) at most MGL_MAX_DIAGNOSTICS; if accepted, empty
                                    except for warnings that a later step adds */
    int count;
    int tasks, counters;
    int epochs_unrolled; /* number of epochs that the proof examines explicitly */
    double ms;
} mgl_verdict;
enum { MGL_MAX_DIAGNOSTICS = 64 };

/* Checks the program; with a graph also its meaning. Returns MGL_OK for both verdicts. Fails only
 * if memory runs out; the verdict is then `rejected`. */
mgl_status mgl_validator_check(const mgl_program *program, const mgl_graph *graph, mgl_verdict *out,
                               mgl_error *err);
/* The same with a graph, for a caller that accepts no lossy format: MG708. */
mgl_status mgl_validator_check_strict(const mgl_program *program, const mgl_graph *graph,
                                      mgl_verdict *out, mgl_error *err);
/* Whether a program may use another program's buffer of this kind. */
static inline bool mgl_validator_is_shared(const mgl_buffer *buffer)
{
    return buffer->space == MGL_SPACE_CONST || buffer->space == MGL_SPACE_KV;
}

/* Checks whether `program` may use the tapes, const buffers and caches of a machine that runs
 * `owner` (MG140, MG606, MG712). Each program alone was accepted with the same graph before.
 * Without a graph, the contents of caches are not compared. */
mgl_status mgl_validator_check_pair(const mgl_program *program, const mgl_program *owner,
                                    const mgl_graph *graph, mgl_verdict *out, mgl_error *err);
void mgl_verdict_clear(mgl_verdict *verdict);

/* A code's entry in the list of diagnostics (validator/codes.def): meaning, example and remedy.
 * NULL for an unknown code. Static storage. */
typedef struct mgl_code_info {
    int code;
    const char *title, *meaning, *example, *remedy;
} mgl_code_info;
const mgl_code_info *mgl_validator_explain(int code);
/* The list, in order of codes. */
const mgl_code_info *mgl_validator_codes(int *count);

#endif
