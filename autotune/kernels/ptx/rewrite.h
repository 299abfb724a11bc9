/*
 * Peephole rewrites of PTX, by name: each says what it needs to keep the meaning, which no rewrite
 * can see for itself, and what it changes. The gates judge what comes out. All places that a rule
 * fits are rewritten.
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

/* Appends the rewritten text; *count places were rewritten. MGL_USAGE: there is no such rule. */
mgl_status mgl_ptx_rewrite(const mgl_ptx *ptx, const char *rule, mgl_text *out, size_t *count,
                           mgl_error *err);

#endif
