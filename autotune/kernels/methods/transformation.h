/*
 * Natural transformations: how the text of a micro-kernel is changed, told in words, pass by pass.
 * A pass names the regions that it edits; each is one call of a model. What texts stand between two
 * passes may be broken; behind the last one the text is judged. A piece may be inserted without a
 * model. Numbers that a search is to choose are tunables, and never constants: the text has
 * TUNE_SPLIT_K for split_k.
 *
 *     {"schema": "megalith.transformation/1", "name": "split_k", "summary": "...",
 *      "architectures": ["sm_80"], "ops": ["norm_linear"],
 *      "requires": ["parts"], "provides": ["split_k"],
 *      "tunables": [{"name": "split_k", "values": [1, 2, 4]}], "valid": "expression of them",
 *      "inserts": [{"region": "macros", "text": "..."}],
 *      "passes": [{"name": "split", "instruction": "...", "regions": ["device"],
 *                  "may_break": false, "retries": 3}]}
 *
 * `requires` and `provides` are names of what a text has: a step of a plan may stand where all that
 * it requires was provided before. `valid`, which may be left out, is an expression over the
 * tunables' names (schedule/expression.h): below 1, the values do not go together.
 * `retries` are calls of a region beyond the first.
 *
 *     {"schema": "megalith.plan/1", "name": "sm_90a", "architecture": "sm_90a", "summary": "...",
 *      "steps": ["refactor", "split_k"]}
 *
 * A plan skips steps that are not for its op.
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
    MGL_MAX_NAMES = 32, /* of a list */
    MGL_MAX_RETRIES = 14
};

/* Everything that is pointed to is of the file's tree. */
typedef struct mgl_names {
    const char *names[MGL_MAX_NAMES]; /* (count) */
    int count;
} mgl_names;
bool mgl_names_have(const mgl_names *names, const char *name);

typedef struct mgl_tunable {
    const char *name;
    int64_t values[MGL_MAX_TUNABLE_VALUES]; /* (count), rising */
    int count;
} mgl_tunable;

typedef struct mgl_insert {
    mgl_kernel_region region;
    const char *text;
} mgl_insert;

typedef struct mgl_pass {
    const char *name, *instruction;
    mgl_kernel_region regions[MGL_KERNEL_REGION_COUNT]; /* (region_count) in the order of calls */
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
    bool own; /* of the user's folder */
    mgl_json json;
} mgl_transformation;

/* MGL_BAD_INPUT, with the file and the place. Release with mgl_transformation_clear. */
mgl_status mgl_transformation_parse(const char *text, size_t length, const char *file,
                                    mgl_transformation *out, mgl_error *err);
void mgl_transformation_clear(mgl_transformation *transformation);
/* Calls of a model, where each answer is taken at once. */
int mgl_transformation_calls(const mgl_transformation *transformation);

typedef struct mgl_transform_script {
    const char *name, *summary, *architecture;
    mgl_names steps;
    mgl_json json;
} mgl_transform_script;
mgl_status mgl_transform_script_parse(const char *text, size_t length, const char *file,
                                      mgl_transform_script *out, mgl_error *err);
void mgl_transform_script_clear(mgl_transform_script *script);

/* ---- the library ----------------------------------------------------------------------------- */

extern const mgl_cuda_source
    mgl_transformation_sources[]; /* made of loops/transformations, plans */
extern const int mgl_transformation_source_count;

/* The starter's and the user's own. Zero-initialise; release with mgl_library_clear. */
typedef struct mgl_library {
    mgl_transformation *list; /* (count) by name */
    size_t count, capacity;
    mgl_transform_script *scripts; /* (plan_count) */
    size_t script_count, script_capacity;
} mgl_library;
/* `folder`: of the user, whose *.json are transformations or plans, and take the place of those of
 * the same name; NULL: none. A folder that does not stand has none. */
mgl_status mgl_library_open(const char *folder, mgl_library *out, mgl_error *err);
void mgl_library_clear(mgl_library *library);
const mgl_transformation *mgl_library_find(const mgl_library *library, const char *name);
const mgl_transform_script *mgl_library_find_script(const mgl_library *library, const char *name);

/* Whether it is one for this op and this architecture. */
bool mgl_transformation_suits(const mgl_transformation *transformation, const char *op,
                              const char *arch);
/* Whether a text that has these names, with blanks between them, has all that it requires. */
bool mgl_transformation_is_ready(const mgl_transformation *transformation, const char *provides);
/* MGL_USAGE where it has not, with what is missing and the transformations for the op that provide
 * it. */
mgl_status mgl_library_check_ready(const mgl_library *library,
                                   const mgl_transformation *transformation, const char *op,
                                   const char *provides, mgl_error *err);
/* The steps of a plan that are for this op, in order, with what each requires at its place.
 * MGL_BAD_INPUT: one is missing in the library, or requires what none before it provides. */
mgl_status mgl_transform_script_steps(const mgl_library *library,
                                      const mgl_transform_script *script, const char *op,
                                      const mgl_transformation *steps[MGL_MAX_NAMES], int *count,
                                      mgl_error *err);

#endif
