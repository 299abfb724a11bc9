/*
 * Store of optimization ideas: an idea is a change of one feature of the condensed form, with
 * measurements as evidence. Input: pairs of condensed modules with a measured gain. Output: the
 * store as a JSON file, and lines for prompts. Files are parsed strictly. `megalith kernel ptx`
 * calls it, and kernel sessions, whose prompts contain the ideas (sessions/background.c).
 *
 *     {"schema": "megalith.ptx_ideas/1", "ideas": [
 *       {"feature": "global.load.vector", "before": "v1: 8", "after": "v4: 2",
 *        "requires": "sm_80", "uses": 2, "successes": 1,
 *        "evidence": [{"op": "merge", "device": "H100", "gain": 0.04}]}]}
 *
 * `gain` is log(old time / new time), measured by the judge. A pair adds one idea per feature
 * whose values differ. Its measurement counts equally for all these ideas, because a pair cannot
 * separate their effects. "with" in the evidence is the number of other ideas in the pair.
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_IDEAS_H
#define MGL_AUTOTUNE_KERNELS_PTX_IDEAS_H

#include "autotune/kernels/ptx/diff.h"

enum { MGL_PTX_MAX_EVIDENCE = 32, MGL_PTX_MAX_IDEAS = 4096 };
#define MGL_PTX_SUCCESS 0.05 /* minimum gain that counts as a success */

typedef struct mgl_ptx_evidence {
    char *op, *device; /* owned */
    double gain;       /* log(old time / new time) */
    int64_t with;      /* number of other ideas that the same pair supports */
} mgl_ptx_evidence;

typedef struct mgl_ptx_idea {
    char *feature, *before, *after, *requires; /* owned; requires: the lowest target, as "sm_80" */
    int64_t uses, successes;
    mgl_ptx_evidence evidence[MGL_PTX_MAX_EVIDENCE]; /* the latest measurements */
    size_t evidence_count;
} mgl_ptx_idea;

typedef struct mgl_ptx_ideas {
    mgl_ptx_idea *rows;
    size_t count, capacity;
} mgl_ptx_ideas;

/* A missing file is an empty store. */
mgl_status mgl_ptx_ideas_read(const char *path, mgl_ptx_ideas *out, mgl_error *err);
mgl_status mgl_ptx_ideas_parse(const char *text, size_t length, const char *file,
                               mgl_ptx_ideas *out, mgl_error *err);
void mgl_ptx_ideas_clear(mgl_ptx_ideas *ideas);
/* Writes the whole file. */
void mgl_ptx_ideas_write(const mgl_ptx_ideas *ideas, mgl_json_out *out);

/* Two implementations of an op and the measured gain between them. *learned is the number of
 * ideas that are new or got evidence. */
typedef struct mgl_ptx_pair {
    const mgl_ptx_condensed *before, *after;
    const char *op, *device;
    double gain;
} mgl_ptx_pair;
mgl_status mgl_ptx_learn(const mgl_ptx_pair *pair, mgl_ptx_ideas *ideas, size_t *learned,
                         mgl_error *err);
/* Learns from a pair in a file, while other processes may do so too. *count: number of ideas in the
 * file. */
mgl_status mgl_ptx_ideas_learn(const char *path, const mgl_ptx_pair *pair, size_t *learned,
                               size_t *count, mgl_error *err);

/* Writes one line per idea that the target can use, highest success rate first. */
mgl_status mgl_ptx_ideas_put(const mgl_ptx_ideas *ideas, const char *target, mgl_text *out,
                             mgl_error *err);

/* Writes the prompt for a proposer: task, condensed forms, ideas (highest success rate first)
 * and hardware. All data is between delimiters that contain `border`. */
typedef struct mgl_ptx_source {
    const char *name;
    const mgl_ptx_condensed *condensed;
} mgl_ptx_source;
mgl_status mgl_ptx_combine(const mgl_ptx_source *sources, size_t count, const mgl_ptx_ideas *ideas,
                           const char *target, uint64_t border, mgl_text *out, mgl_error *err);

#endif
