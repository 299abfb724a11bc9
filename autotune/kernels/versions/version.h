/*
 * Versions: good texts of a unit, as a directed acyclic graph in a content-addressed folder (as in
 * Git). Kernel sessions, the script engine and the rounds add versions.
 *
 *     FOLDER/objects/ID.json    a version; ID is the SHA-256 of the file's bytes
 *     FOLDER/branches/NAME      the id of the branch's version, or "original", and a line end
 *     FOLDER/head               the name of the current branch, and a line end
 *
 * A version contains its parents' ids, the text, the verdict, the measured facts, and the values of
 * its tunables. A version never changes. Files are written atomically, objects before the branch
 * that names them. If a process is killed at any moment, every name still refers to a complete
 * version. A damaged version is rejected by its hash.
 *
 * The name "original" means the unit's original text wherever a version can be named. A branch
 * without a version means the same. The original text is not a version and has no verdict.
 */
#ifndef MGL_AUTOTUNE_KERNELS_VERSIONS_VERSION_H
#define MGL_AUTOTUNE_KERNELS_VERSIONS_VERSION_H

#include "autotune/kernels/gates/kernel.h"
#include "base/file.h"
#include "base/json_out.h"

enum { MGL_VERSION_PARENTS = 4, MGL_VERSION_VALUES = 16 };

/* Strings are borrowed in a record to add, and owned (json) by a record that was read. */
typedef struct mgl_version_record {
    char id[MGL_SHA256_HEX];
    char parents[MGL_VERSION_PARENTS][MGL_SHA256_HEX]; /* (parent_count) */
    int parent_count;
    const char *unit, *transformation, *note, *arch; /* transformation, note: "" for none */
    const char *text;
    mgl_trial_verdict verdict;
    mgl_kernel_value values[MGL_VERSION_VALUES]; /* (value_count) */
    int value_count;
    const char *provides; /* names that the text provides, separated by blanks */
    mgl_json json;
} mgl_version_record;
void mgl_version_clear(mgl_version_record *version);

typedef struct mgl_versions mgl_versions;
/* Creates the folder if it is missing, unless `reads` is set (read-only). The first branch is
 * "main". */
mgl_status mgl_versions_open(const char *folder, bool reads, mgl_versions **out, mgl_error *err);
void mgl_versions_close(mgl_versions *versions); /* NULL is fine */

/* Sets the text that "original" names; without this call the name is invalid. Both are borrowed. */
void mgl_versions_lend_original(mgl_versions *versions, const char *unit, const char *text);
extern const char mgl_version_original[]; /* "original" */
bool mgl_version_is_original(const mgl_version_record *version);

/* The current branch. */
const char *mgl_versions_branch(const mgl_versions *versions);
/* Adds a version after the branch's version and moves the branch. Fills the id, and the first
 * parent if none is given. MGL_USAGE: the verdict is not good. */
mgl_status mgl_versions_add(mgl_versions *versions, mgl_version_record *version, mgl_error *err);
/* Finds a version by a branch name, an id, at least the first eight digits of an id, or "original";
 * NULL: the current branch. MGL_BAD_INPUT: no match, or more than one. */
mgl_status mgl_versions_get(const mgl_versions *versions, const char *name, mgl_version_record *out,
                            mgl_error *err);
/* Lists versions from `name` back along the first parents. MGL_BAD_INPUT: no version, as for
 * "original". */
typedef mgl_status mgl_version_fn(void *user, const mgl_version_record *version, mgl_error *err);
mgl_status mgl_versions_log(const mgl_versions *versions, const char *name, mgl_version_fn *tell,
                            void *user, mgl_error *err);
/* Lists all versions except damaged ones, in no particular order. */
mgl_status mgl_versions_each(const mgl_versions *versions, mgl_version_fn *tell, void *user,
                             mgl_error *err);
/* Creates a branch at `at` and switches to it. If the branch exists, switches to it (`at` NULL).
 * Names consist of letters, digits, '_', '-' and '.', and are not "original". MGL_USAGE: the branch
 * exists at another version. */
mgl_status mgl_versions_make_branch(mgl_versions *versions, const char *branch, const char *at,
                                    mgl_error *err);
/* Switches to an existing branch. MGL_BAD_INPUT if it is missing; the message lists the
 * branches. */
mgl_status mgl_versions_go_to(mgl_versions *versions, const char *branch, mgl_error *err);
/* Moves the current branch to the named version; no version is lost. */
mgl_status mgl_versions_restore(mgl_versions *versions, const char *name, mgl_error *err);
mgl_status mgl_versions_branches(const mgl_versions *versions, mgl_file_list *out, mgl_error *err);

/* Line diff of two texts. Each line starts with " " (common), "-" (removed) or "+" (added). Only
 * the ends of runs of more than six common lines are printed. */
mgl_status mgl_text_diff(const char *a, const char *b, mgl_text *out, mgl_error *err);

#endif
