/*
 * Profile, class, hint: what is known of a kernel becomes one word and one sentence for whoever
 * writes the next one. Sources are a CSV of Nsight Compute, in either of its forms, and static
 * facts; whatever is missing is unknown, and classes that need it are passed over. Behind a change,
 * the delta hint names what got worse most.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_PROFILE_H
#define MGL_AUTOTUNE_KERNELS_METHODS_PROFILE_H

#include "autotune/kernels/methods/judge.h"
#include "base/text.h"

typedef enum mgl_metric {
#define MGL_METRIC(id, ...) MGL_METRIC_##id,
#include "autotune/kernels/methods/profile.def"
    MGL_METRIC_COUNT
} mgl_metric;
const char *mgl_metric_name(mgl_metric metric);
const char *mgl_metric_what(mgl_metric metric);

typedef enum mgl_class {
#define MGL_CLASS(id, ...) MGL_CLASS_##id,
#include "autotune/kernels/methods/profile.def"
    MGL_CLASS_COUNT,
    MGL_CLASS_UNKNOWN = MGL_CLASS_COUNT
} mgl_class;
const char *mgl_class_name(mgl_class class); /* "unknown" too */
const char *mgl_class_hint(mgl_class class); /* one sentence; "" for unknown */

typedef struct mgl_profile {
    double values[MGL_METRIC_COUNT]; /* NAN: unknown */
} mgl_profile;
mgl_profile mgl_profile_unknown(void);
/* Registers and spills; the others stay as they are. */
void mgl_profile_add_facts(mgl_profile *profile, const mgl_facts *facts);

/* A CSV as `ncu --csv` prints it, a row a metric ("Metric Name") or a column a metric (--page raw);
 * lines before its head, "==PROF==" and the program's own, are skipped. The rows of kernels whose
 * name has `kernel` in it count (NULL: all); of several, the last. Fills what it finds; *found says
 * how many. MGL_BAD_INPUT: there is no head, or a row breaks off. */
mgl_status mgl_profile_read_csv(const char *text, size_t length, const char *kernel,
                                mgl_profile *profile, int *found, mgl_error *err);

mgl_class mgl_profile_class(const mgl_profile *profile);
/* "DRAM bound (DRAM throughput, % of peak: 81.2): Memory is busy: ..." */
void mgl_profile_hint(const mgl_profile *profile, mgl_text *out);
/* What got worse by more than 5 %, the worst first and three at most; nothing where nothing did. */
void mgl_profile_delta_hint(const mgl_profile *before, const mgl_profile *after, mgl_text *out);

#endif
