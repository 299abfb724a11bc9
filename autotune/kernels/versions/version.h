/*
 * Checkpoints: texts of a unit that were good, as a directed graph in a folder.
 *
 *     FOLDER/objects/ID.json    a checkpoint; ID is the SHA-256 of the file's bytes
 *     FOLDER/branches/NAME      the id that a branch stands at, or "own", and a line end
 *     FOLDER/head               the name of the branch that is worked on, and a line end
 *
 * A checkpoint holds its parents' ids, the text, the verdict, the facts that were measured, and the
 * values of its tunables; it never changes. Files are written whole or not at all, objects before
 * the branch that names them: a process that is killed at any moment leaves a graph in which every
 * name leads to a whole checkpoint. What is damaged is refused by its hash.
 *
 * "own" names the unit's own text wherever a checkpoint can be named, and so does a branch that has
 * no checkpoint yet; it is none itself, and has no verdict.
 */
#ifndef MGL_AUTOTUNE_KERNELS_VERSIONS_VERSION_H
#define MGL_AUTOTUNE_KERNELS_VERSIONS_VERSION_H

#include "autotune/kernels/methods/judge.h"
#include "base/file.h"
#include "base/json_out.h"

enum { MGL_VERSION_PARENTS = 4, MGL_VERSION_VALUES = 16 };

/* Strings are lent by whoever adds one, and owned (json) by one that was read. */
typedef struct mgl_version_record {
    char id[MGL_SHA256_HEX];
    char parents[MGL_VERSION_PARENTS][MGL_SHA256_HEX]; /* (parent_count) */
    int parent_count;
    const char *unit, *transformation, *note, *arch; /* transformation, note: "" for none */
    const char *text;
    mgl_loop_verdict verdict;
    mgl_tunable_value values[MGL_VERSION_VALUES]; /* (value_count) */
    int value_count;
    const char *provides; /* names of what the text has, with blanks between them */
    mgl_json json;
} mgl_version_record;
void mgl_version_clear(mgl_version_record *version);

typedef struct mgl_versions mgl_versions;
/* Makes the folder where it does not stand, unless the caller `reads` and nothing more; its first
 * branch is "main". */
mgl_status mgl_versions_open(const char *folder, bool reads, mgl_versions **out, mgl_error *err);
void mgl_versions_close(mgl_versions *versions); /* NULL is fine */

/* What "own" names from now on; without it there is no such text. Both are lent. */
void mgl_versions_lend_original(mgl_versions *versions, const char *unit, const char *text);
extern const char mgl_version_original[]; /* "own" */
bool mgl_version_is_original(const mgl_version_record *version);

/* The branch that is worked on. */
const char *mgl_versions_branch(const mgl_versions *versions);
/* Adds one behind where the branch stands, and moves the branch: id, and the first parent where
 * none is given, are filled. MGL_USAGE: its verdict is not good. */
mgl_status mgl_versions_add(mgl_versions *versions, mgl_version_record *version, mgl_error *err);
/* By a branch's name, an id, the first eight digits of one or more, or "own"; NULL: where the
 * branch that is worked on stands. MGL_BAD_INPUT: there is none, or several. */
mgl_status mgl_versions_get(const mgl_versions *versions, const char *name, mgl_version_record *out,
                            mgl_error *err);
/* From there back along the first parents. MGL_BAD_INPUT: there is none, as at "own". */
typedef mgl_status mgl_version_fn(void *user, const mgl_version_record *version, mgl_error *err);
mgl_status mgl_versions_log(const mgl_versions *versions, const char *name, mgl_version_fn *tell,
                            void *user, mgl_error *err);
/* All of them, in no order that counts, but for those that are damaged. */
mgl_status mgl_versions_each(const mgl_versions *versions, mgl_version_fn *tell, void *user,
                             mgl_error *err);
/* Makes a branch of that name there, and works on it; or, where it stands, goes on with it (`at`
 * NULL). Names are of letters, digits, '_', '-' and '.', and not "own". MGL_USAGE: it stands
 * elsewhere. */
mgl_status mgl_versions_make_branch(mgl_versions *versions, const char *branch, const char *at,
                                    mgl_error *err);
/* Works on a branch that stands. MGL_BAD_INPUT, with those there are, where there is none. */
mgl_status mgl_versions_go_to(mgl_versions *versions, const char *branch, mgl_error *err);
/* The branch that is worked on stands there from now on; nothing is lost. */
mgl_status mgl_versions_restore(mgl_versions *versions, const char *name, mgl_error *err);
mgl_status mgl_versions_branches(const mgl_versions *versions, mgl_file_list *out, mgl_error *err);

/* What differs between two texts, line by line: " ", "-" and "+" before each line that stands, went
 * and came; runs of more than six lines that stand are left out but for their ends. */
mgl_status mgl_text_diff(const char *a, const char *b, mgl_text *out, mgl_error *err);

#endif
