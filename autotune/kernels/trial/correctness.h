/*
 * Correctness check of a micro-kernel (differential testing against a reference). Input: memory
 * images of launches of one token, from one program and one set of inputs: two launches of the
 * incumbent and three of the candidate, on memory poisoned with two alternating patterns. The
 * reference is one launch of the CPU machine in plain C with f64 sums. Output: an outcome and the
 * largest errors. All functions are pure, and the file is frozen (autotune/frozen.txt).
 * correctness_run.c calls it.
 *
 * The written elements are those on which both incumbent launches agree. There the candidate must
 * write the same finite bits three times, near the reference. The limit of each error is a fixed
 * limit or 4 times the incumbent's error, whichever is larger. The fixed limits are the tolerance
 * (relative L2), a quarter of the tolerance (mean signed error) and twice the tolerance (largest
 * element error / root mean square). No other element may be written. Buffers that do not depend on
 * the op's results must equal the incumbent's, bit by bit.
 */
#ifndef MGL_AUTOTUNE_KERNELS_TRIAL_CORRECTNESS_H
#define MGL_AUTOTUNE_KERNELS_TRIAL_CORRECTNESS_H

#include "autotune/kernels/gates/unit.h"
#include "autotune/store/record.h"
#include "base/sha256.h"
#include "schedule/program.h"

/* How a buffer depends on a unit's code. */
typedef enum mgl_correctness_level {
    MGL_CORRECTNESS_APART,  /* no dependence */
    MGL_CORRECTNESS_RESULT, /* an f32 result of the op, or computed from results through f32 only */
    MGL_CORRECTNESS_ROUNDED /* computed through 16-bit values, where another summation order may
                             * round differently */
} mgl_correctness_level;

/* Whether a task may execute code of the unit's file. Variants of a family use functions of one
 * another's files; for example `batch` and `by_rows` run the code of `skinny` for few rows.
 * Therefore a change of one file may change the result of another variant. */
bool mgl_correctness_may_run(const mgl_task *task, const mgl_kernel_unit *unit);

/* Whether a task belongs to the unit's op or uses its variant. */
bool mgl_correctness_is_task(const mgl_task *task, const mgl_kernel_unit *unit);
/* Returns the number of tasks in all lists of a program for which mgl_correctness_is_task holds.
 * Fills the level of each buffer (buffer_count of mgl_program_whole). */
int mgl_correctness_levels(const mgl_program *program, const mgl_kernel_unit *unit,
                           mgl_correctness_level *levels);

typedef struct mgl_correctness {
    const mgl_program *program;
    const mgl_kernel_unit *unit;
    const mgl_correctness_level *levels;                 /* (buffer_count of mgl_program_whole) */
    double tolerance_f32, tolerance_bf16, tolerance_f16; /* relative L2 */
    bool exact_tokens; /* all logits of a row are equal, so the token must equal the incumbent's */
} mgl_correctness;

enum { MGL_CORRECTNESS_INCUMBENTS = 2, MGL_CORRECTNESS_CANDIDATES = 3 };

/* Memory image in the layout of eval/paired_bench.h: activations, cache and io. */
typedef struct mgl_correctness_shot {
    const unsigned char *memory;
    const unsigned char *constants; /* MGL_SHA256_BYTES */
    const int32_t *tokens;          /* (batch) */
} mgl_correctness_shot;
typedef struct mgl_correctness_shots {
    mgl_correctness_shot incumbent[MGL_CORRECTNESS_INCUMBENTS],
        candidate[MGL_CORRECTNESS_CANDIDATES];
    mgl_correctness_shot reference; /* `constants` is unused */
    int batch;
} mgl_correctness_shots;

/* The largest errors over all buffers. */
typedef struct mgl_correctness_result {
    double error, incumbent_error; /* relative L2 of the worst buffer: of the candidate, and of
                                    * the incumbent in the same buffer */
    double bias;                   /* mean signed error of the worst buffer */
} mgl_correctness_result;

/* The verdict is MGL_OUTCOME_OK or the fault, with a diagnostic that names buffer, range and
 * pattern. *out is raised to the errors found. MGL_NO_MEMORY. */
mgl_status mgl_correctness_compare(const mgl_correctness *correctness,
                                   const mgl_correctness_shots *shots, mgl_correctness_result *out,
                                   mgl_trial_verdict *verdict, mgl_error *err);

#endif
