/*
 * Peephole rewrites of PTX, selected by name. A rule documents what must hold to keep the meaning,
 * which a rewrite cannot check, and what it changes. A rule rewrites all places that match. The
 * gates judge the result. `megalith kernel ptx` calls it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_REWRITE_H
#define MGL_AUTOTUNE_KERNELS_PTX_REWRITE_H

#include "autotune/kernels/ptx/ptx.h"
#include "base/text.h"

typedef struct mgl_ptx_rule {
    const char *name, *needs, *changes;
} mgl_ptx_rule;

extern const mgl_ptx_rule mgl_ptx_rules[];
extern const size_t mgl_ptx_rule_count;

/* Appends the rewritten text; *count is the number of rewritten places. MGL_USAGE: unknown rule. */
mgl_status mgl_ptx_rewrite(const mgl_ptx *ptx, const char *rule, mgl_text *out, size_t *count,
                           mgl_error *err);

#endif
