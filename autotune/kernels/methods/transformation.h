/*
 * Transformation and script formats, and their library. A transformation is a recipe in natural
 * language that changes the text of a micro-kernel in passes. A pass names the regions that it
 * edits; each region is one call of a model. A text between two passes may be broken. After the
 * last pass the text is evaluated. Pieces can be inserted without a model. Numbers that a search
 * chooses are tunables, never constants: the text uses TUNE_SPLIT_K for split_k.
 *
 *     {"schema": "megalith.transformation/1", "name": "split_k", "summary": "...",
 *      "architectures": ["sm_80"], "ops": ["norm_linear"],
 *      "requires": ["parts"], "provides": ["split_k"],
 *      "tunables": [{"name": "split_k", "values": [1, 2, 4]}], "valid": "expression of them",
 *      "inserts": [{"region": "macros", "text": "..."}],
 *      "passes": [{"name": "split", "instruction": "...", "regions": ["device"],
 *                  "may_break": false, "retries": 3}]}
 *
 * `requires` and `provides` are names of properties of a text. A step of a script can run only
 * after earlier steps provided all that it requires. `valid` is optional: an expression over the
 * tunables' names (schedule/expression.h). If it is below 1, the combination of values is invalid.
 * `retries` is the number of calls per region after the first.
 *
 *     {"schema": "megalith.script/1", "name": "sm_90a", "architecture": "sm_90a", "summary": "...",
 *      "steps": ["refactor", "split_k"]}
 *
 * A script skips steps that do not support its op.
 */
#ifndef MGL_AUTOTUNE_KERNELS_METHODS_TRANSFORMATION_H
#define MGL_AUTOTUNE_KERNELS_METHODS_TRANSFORMATION_H

#include "autotune/kernels/gates/unit.h"
#include "base/json.h"
#include "schedule/expression.h"
#include "vm/cuda/sources.h"

enum {
    MGL_MAX_PASSES = 16,
    MGL_MAX_TUNABLES = 8,
    MGL_MAX_TUNABLE_VALUES = 32,
    MGL_MAX_INSERTS = 8,
    MGL_MAX_NAMES = 32, /* per list */
    MGL_MAX_RETRIES = 14
};

/* All pointers point into the file's JSON tree. */
typedef struct mgl_names {
    const char *names[MGL_MAX_NAMES]; /* (count) */
    int count;
} mgl_names;
bool mgl_names_have(const mgl_names *names, const char *name);
/* Adds the names that the list does not contain yet, up to the capacity of the list. */
void mgl_names_append(mgl_names *to, const mgl_names *names);

typedef struct mgl_tunable {
    const char *name;
    int64_t values[MGL_MAX_TUNABLE_VALUES]; /* (count), ascending */
    int count;
} mgl_tunable;

typedef struct mgl_insert {
    mgl_kernel_region region;
    const char *text;
} mgl_insert;

typedef struct mgl_pass {
    const char *name, *instruction;
    mgl_kernel_region regions[MGL_KERNEL_REGION_COUNT]; /* (region_count) in call order */
    int region_count, retries;
    bool may_break;
} mgl_pass;

typedef struct mgl_transformation {
    const char *name, *summary;
    mgl_names architectures, ops, requires, provides;
    mgl_tunable tunables[MGL_MAX_TUNABLES]; /* (tunable_count) */
    int tunable_count;
    bool has_valid;
    mgl_expression valid;
    mgl_insert inserts[MGL_MAX_INSERTS]; /* (insert_count) */
    int insert_count;
    mgl_pass passes[MGL_MAX_PASSES]; /* (pass_count) */
    int pass_count;
    bool own; /* read from the user's folder */
    mgl_json json;
} mgl_transformation;

/* MGL_BAD_INPUT with the file and the position. Release with mgl_transformation_clear. */
mgl_status mgl_transformation_parse(const char *text, size_t length, const char *file,
                                    mgl_transformation *out, mgl_error *err);
void mgl_transformation_clear(mgl_transformation *transformation);
/* The first requirement that is not among the names; NULL: none. */
const char *mgl_transformation_missing(const mgl_transformation *transformation,
                                       const mgl_names *names);
/* The number of model calls if each first answer is accepted. */
int mgl_transformation_calls(const mgl_transformation *transformation);

typedef struct mgl_transform_script {
    const char *name, *summary, *architecture;
    mgl_names steps;
    mgl_json json;
} mgl_transform_script;
mgl_status mgl_transform_script_parse(const char *text, size_t length, const char *file,
                                      mgl_transform_script *out, mgl_error *err);
void mgl_transform_script_clear(mgl_transform_script *script);
/* Whether a text is a script, by its schema. */
bool mgl_transform_is_script(const char *text, size_t length);

/* ---- the library ----------------------------------------------------------------------------- */

extern const mgl_cuda_source
    mgl_transformation_sources[]; /* generated from methods/transformations and methods/scripts */
extern const int mgl_transformation_source_count;

/* Built-in and user transformations. Zero-initialize; release with mgl_library_clear. */
typedef struct mgl_library {
    mgl_transformation *list; /* (count) sorted by name */
    size_t count, capacity;
    mgl_transform_script *scripts; /* (script_count) */
    size_t script_count, script_capacity;
} mgl_library;
/* `folder`: the user's folder, or NULL. Its *.json files are transformations or scripts and
 * replace built-in ones of the same name. A missing folder counts as empty. */
mgl_status mgl_library_open(const char *folder, mgl_library *out, mgl_error *err);
void mgl_library_clear(mgl_library *library);
const mgl_transformation *mgl_library_find(const mgl_library *library, const char *name);
const mgl_transform_script *mgl_library_find_script(const mgl_library *library, const char *name);

/* Whether the transformation supports this op and this architecture. */
bool mgl_transformation_suits(const mgl_transformation *transformation, const char *op,
                              const char *arch);
/* Whether `provides` (names separated by blanks) contains all that the transformation requires. */
bool mgl_transformation_is_ready(const mgl_transformation *transformation, const char *provides);
/* MGL_USAGE if a requirement is missing. The message lists the missing names and the
 * transformations for the op that provide them. */
mgl_status mgl_library_check_ready(const mgl_library *library,
                                   const mgl_transformation *transformation, const char *op,
                                   const char *provides, mgl_error *err);
/* The steps of a script that support this op, in order, with their requirements checked.
 * MGL_BAD_INPUT: a step is not in the library, or requires what no earlier step provides. */
mgl_status mgl_transform_script_steps(const mgl_library *library,
                                      const mgl_transform_script *script, const char *op,
                                      const mgl_transformation *steps[MGL_MAX_NAMES], int *count,
                                      mgl_error *err);

#endif
