/*
 * Background of a prompt: facts about a micro-kernel besides its text. Each source adds a
 * paragraph:
 *
 *     hardware features that PTX offers on the target   ptx/hardware.h
 *     ideas with their measurements                     ptx/ideas.h, ideas.json
 *     changes that were tried on the op                 experiment_log.h, experiment_log.json
 *     the bottleneck, and what a change made worse      methods/profile.h
 *
 * The files are in the folder of all kernel sessions; a missing file is empty. Output: lines that
 * the prompts quote as data. Kernel sessions call it.
 */
#ifndef MGL_AUTOTUNE_KERNELS_SESSIONS_BACKGROUND_H
#define MGL_AUTOTUNE_KERNELS_SESSIONS_BACKGROUND_H

#include "autotune/kernels/methods/evaluator.h"
#include "base/text.h"

#define MGL_BACKGROUND_IDEAS "ideas.json" /* in the folder of all kernel sessions */
#define MGL_BACKGROUND_LOG   "experiment_log.json"

typedef struct mgl_background {
    const char *folder; /* the folder of all kernel sessions */
    const char *op, *arch;
    mgl_facts before, after; /* facts of the text before its last change, and of the current text */
} mgl_background;

/* MGL_BAD_INPUT: a file of the folder is damaged; the message names it. */
mgl_status mgl_background_put(const mgl_background *background, mgl_text *out, mgl_error *err);

#endif
