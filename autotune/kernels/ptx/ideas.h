/*
 * What is known to make kernels faster: ideas, each a change of one feature of the condensed form,
 * with the measurements that speak for it. Beside them stand features of the hardware. Both are
 * JSON files that are read strictly; what the library knows of hardware is built in.
 *
 *     {"schema": "megalith.ptx_ideas/1", "ideas": [
 *       {"feature": "global.load.vector", "before": "v1: 8", "after": "v4: 2",
 *        "requires": ["sm_80"], "uses": 2, "successes": 1,
 *        "evidence": [{"op": "merge", "device": "H100", "gain": 0.04}]}]}
 *
 * `gain` is the logarithm of old time / new time as the judge measured it. An idea is learned where
 * exactly the values of a feature differ; a measurement counts for each idea of its pair alike,
 * since a pair can not tell which of them did it. An idea that never stands alone says so by its
 * evidence ("with").
 */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_IDEAS_H
#define MGL_AUTOTUNE_KERNELS_PTX_IDEAS_H

#include "autotune/kernels/ptx/diff.h"

enum { MGL_PTX_MAX_EVIDENCE = 32, MGL_PTX_MAX_IDEAS = 4096 };
#define MGL_PTX_SUCCESS 0.05 /* of a gain, as section 3 of the rules says */

typedef struct mgl_ptx_evidence {
    char *op, *device; /* owned */
    double gain;       /* log(old time / new time) */
    int64_t with;      /* ideas of the same pair beside this one */
} mgl_ptx_evidence;

typedef struct mgl_ptx_idea {
    char *feature, *before, *after, *requires; /* owned; requires: "sm_80", the least target */
    int64_t uses, successes;
    mgl_ptx_evidence evidence[MGL_PTX_MAX_EVIDENCE]; /* the latest */
    size_t evidence_count;
} mgl_ptx_idea;

typedef struct mgl_ptx_ideas {
    mgl_ptx_idea *rows;
    size_t count, capacity;
} mgl_ptx_ideas;

/* No file of that name is an empty store. */
mgl_status mgl_ptx_ideas_read(const char *path, mgl_ptx_ideas *out, mgl_error *err);
mgl_status mgl_ptx_ideas_parse(const char *text, size_t length, const char *file,
                               mgl_ptx_ideas *out, mgl_error *err);
void mgl_ptx_ideas_clear(mgl_ptx_ideas *ideas);
/* The whole file. */
void mgl_ptx_ideas_write(const mgl_ptx_ideas *ideas, mgl_json_out *out);
mgl_status mgl_ptx_ideas_save(const mgl_ptx_ideas *ideas, const char *path, mgl_error *err);

/* What differs between two implementations of an op, and what was measured between them. *learned:
 * ideas that were new or got evidence. */
typedef struct mgl_ptx_pair {
    const mgl_ptx_condensed *before, *after;
    const char *op, *device;
    double gain;
} mgl_ptx_pair;
mgl_status mgl_ptx_learn(const mgl_ptx_pair *pair, mgl_ptx_ideas *ideas, size_t *learned,
                         mgl_error *err);

/* What is sent to a proposer: task, condensed forms, ideas (those that succeeded most often first)
 * and hardware. All data stands between borders that hold `border`. */
typedef struct mgl_ptx_source {
    const char *name;
    const mgl_ptx_condensed *condensed;
} mgl_ptx_source;
mgl_status mgl_ptx_combine(const mgl_ptx_source *sources, size_t count, const mgl_ptx_ideas *ideas,
                           const char *target, uint64_t border, mgl_text *out, mgl_error *err);

#endif
