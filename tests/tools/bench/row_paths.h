/*
 * The kernel variants of a benchmark row (a shape, a number of sequences, and positions in the
 * cache): each variant of schedule/variants.def in place of those that lowering chose for the ops
 * of its family. All tasks of the family that fit the variant get it. Tasks that do not fit, and
 * tasks of other families that cannot be combined with it, get the variants that lowering would
 * choose for them. The validator decides whether the program may run.
 */
#ifndef MGL_TESTS_TOOLS_BENCH_ROW_PATHS_H
#define MGL_TESTS_TOOLS_BENCH_ROW_PATHS_H

#include "eval/synthetic.h"
#include "schedule/schedule.h"
#include "schedule/variants.h"

enum { ROW_TEXT = 64, PATH_NAMES = 64, PATH_REASON = 240, MOST_PATHS = 16 };

/* SHAPE:BATCH:CONTEXT[:CAPACITY] */
typedef struct row {
    char text[ROW_TEXT];
    char shape[32];
    int batch, context, capacity;
} row;

typedef enum path_kind { PATH_CHOSEN, PATH_PERMITTED, PATH_REFUSED } path_kind;

typedef struct way {
    path_kind kind; /* chosen: its program is the default */
    mgl_family family;
    mgl_variant variant;
    int tasks, all;           /* tasks of the family: with the variant, and all */
    char beside[PATH_NAMES];  /* the variants of the other family */
    int code;                 /* the reason why other tasks of the family do not have it; 0: all
                                 have it */
    char reason[PATH_REASON]; /* "": none */
} way;

typedef struct row_paths {
    way list[MOST_PATHS]; /* (count) by family */
    int count;
} row_paths;

/* Without a capacity, the row has positions for `tokens` new tokens, like bench. */
bool row_parse(const char *text, int tokens, row *out);
/* Lowers the row's program for the target. The caller releases `graph`, also on failure. */
mgl_status row_lower(const row *of, const mgl_target *target, mgl_graph **graph, mgl_program **out,
                     mgl_error *err);
/* Finds the replacements for a program that was just lowered; the program is unchanged. */
mgl_status row_find_paths(mgl_program *program, const mgl_graph *graph, row_paths *out,
                          mgl_error *err);
/* Sets the replacement's variants in a program that was just lowered. */
void path_apply(const way *of, mgl_program *program);

/* The variants that tasks of a family have: "skinny", "skinny+general". */
void kernel_path_names(const mgl_program *program, mgl_family family, char to[PATH_NAMES]);
const char *path_family_name(mgl_family family);

#endif
