/*
 * Whether a micro-kernel computed what its op means, by what launches of one token left in memory:
 * two of the incumbent and three of the candidate, of one program on one set of inputs, on memory
 * that was poisoned with two patterns in turn, and one of the CPU machine in plain C, whose sums
 * are f64. Pure functions of their arguments, frozen (autotune/frozen.txt).
 *
 * What the incumbent wrote is what both of its launches agree on. There the candidate has to have
 * written the same bits three times, numbers, and near the reference: with an error of at most the
 * tolerance, or four times the incumbent's, of which the mean signed part is a quarter at most.
 * Elsewhere it may write nothing. What does not follow from the op's results is as the incumbent
 * left it, bit by bit.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_CORRECTNESS_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_CORRECTNESS_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/store/record.h"
#include "base/sha256.h"
#include "schedule/program.h"

/* How a buffer depends on a unit's code. */
typedef enum mgl_correctness_level {
    MGL_CORRECTNESS_APART,  /* it does not */
    MGL_CORRECTNESS_RESULT, /* it is computed of the op's results, all of f32, or is one */
    MGL_CORRECTNESS_ROUNDED /* of them by way of 16 bits, where a sum in another order may round
                               apart */
} mgl_correctness_level;

/* Whether the unit's text may have a part in what a task computes. Variants of a family use
 * functions of one another's files, and batch and ladder are skinny for few rows: what one of them
 * computes is not apart from another one's file. */
bool mgl_correctness_may_run(const mgl_task *task, const mgl_kernel_unit *unit);

/* Whether a task is of the unit's op, or names its variant. */
bool mgl_correctness_is_task(const mgl_task *task, const mgl_kernel_unit *unit);
/* The number of such tasks in the lists of a program; of each buffer its level to `levels`
 * (buffer_count of mgl_program_whole). */
int mgl_correctness_levels(const mgl_program *program, const mgl_kernel_unit *unit,
                           mgl_correctness_level *levels);

typedef struct mgl_correctness {
    const mgl_program *program;
    const mgl_kernel_unit *unit;
    const mgl_correctness_level *levels;                 /* (buffer_count of mgl_program_whole) */
    double tolerance_f32, tolerance_bf16, tolerance_f16; /* relative L2 */
    bool exact_tokens; /* the token of each row is the incumbent's: all logits are equal */
} mgl_correctness;

enum { MGL_CORRECTNESS_INCUMBENTS = 2, MGL_CORRECTNESS_CANDIDATES = 3 };

/* Memory as eval/paired_bench.h tells it: activations, cache and io. */
typedef struct mgl_correctness_shot {
    const unsigned char *memory;
    const unsigned char *constants; /* MGL_SHA256_BYTES */
    const int32_t *tokens;          /* (batch) */
} mgl_correctness_shot;
typedef struct mgl_correctness_shots {
    mgl_correctness_shot incumbent[MGL_CORRECTNESS_INCUMBENTS],
        candidate[MGL_CORRECTNESS_CANDIDATES];
    mgl_correctness_shot reference; /* `constants` is not used */
    int batch;
} mgl_correctness_shots;

/* The largest errors over all buffers. */
typedef struct mgl_correctness_result {
    double error, incumbent_error; /* relative L2 of the worst buffer: the candidate's, and there
                                      the incumbent's */
    double bias;                   /* mean signed error of the worst buffer */
} mgl_correctness_result;

/* MGL_OUTCOME_OK, or what is wrong, with a diagnostic that names buffer, extent and pattern. *out
 * takes the larger of what is there and what is found. MGL_NO_MEMORY. */
mgl_status mgl_correctness_judge(const mgl_correctness *correctness,
                                 const mgl_correctness_shots *shots, mgl_correctness_result *out,
                                 mgl_outcome *outcome, char diagnostic[MGL_MAX_DIAGNOSTIC + 1],
                                 mgl_error *err);

#endif
