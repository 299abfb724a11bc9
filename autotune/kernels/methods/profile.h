/*
 * Bottleneck classification of a kernel (decision list). Input: a CSV of Nsight Compute in either
 * of its forms, a launch trace, and static facts. Output: one class and one hint, which a model
 * gets with the next request. Missing metrics are unknown, and classes that need them are skipped.
 * After a change, the delta hint names the metrics that became worst. The rounds (rounds.c), kernel
 * sessions (sessions/background.c) and `megalith kernel prompt` call it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_PROFILE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_PROFILE_H

#include "autotune/kernels/methods/evaluator.h"
#include "base/json.h"
#include "base/text.h"

typedef enum mgl_metric {
#define MGL_METRIC(id, ...) MGL_METRIC_##id,
#include "autotune/kernels/methods/profile.def"
    MGL_METRIC_COUNT
} mgl_metric;

typedef enum mgl_class {
#define MGL_CLASS(id, ...) MGL_CLASS_##id,
#include "autotune/kernels/methods/profile.def"
    MGL_CLASS_COUNT,
    MGL_CLASS_UNKNOWN = MGL_CLASS_COUNT
} mgl_class;
const char *mgl_class_name(mgl_class class); /* the name of a class, or "unknown" */
const char *mgl_class_hint(mgl_class class); /* one sentence; "" for unknown */

typedef struct mgl_profile {
    double values[MGL_METRIC_COUNT]; /* NAN: unknown */
} mgl_profile;
mgl_profile mgl_profile_unknown(void);
/* Sets registers and spills; the other values are unchanged. */
void mgl_profile_add_facts(mgl_profile *profile, const mgl_facts *facts);

/*
 * Reads a CSV of `ncu --csv`, with one row per metric ("Metric Name") or one column per metric
 * (--page raw). Lines before the header row are skipped, for example "==PROF==" and the program's
 * own output. Only rows of kernels whose name contains `kernel` count (NULL: all); the last such
 * row wins. *found is the number of known metrics. MGL_BAD_INPUT: no header row, or a truncated
 * row.
 */
mgl_status mgl_profile_read_csv(const char *text, size_t length, const char *kernel,
                                mgl_profile *profile, int *found, mgl_error *err);

/*
 * Reads the output of `megalith trace MODEL --json`: of the time of an op's tasks, the shares that
 * wait for the ring, the input, the task before, and the epilogue. *found is the number of known
 * metrics; 0: the trace has no task of the op. MGL_BAD_INPUT: not such a file.
 */
mgl_status mgl_profile_read_trace(const mgl_json *json, const char *op, mgl_profile *profile,
                                  int *found, mgl_error *err);

mgl_class mgl_profile_class(const mgl_profile *profile);
/* "DRAM bound (DRAM throughput, % of peak: 81.2): Memory is busy: ..." */
void mgl_profile_hint(const mgl_profile *profile, mgl_text *out);
/* Appends one line with the hint, and one line with the metrics that got worse. Appends nothing if
 * neither is known. */
void mgl_profile_put(const mgl_profile *before, const mgl_profile *after, mgl_text *out);
/* Appends the metrics that got worse by more than 5 %, worst first, at most three; nothing if no
 * metric did. */
void mgl_profile_delta_hint(const mgl_profile *before, const mgl_profile *after, mgl_text *out);

#endif
