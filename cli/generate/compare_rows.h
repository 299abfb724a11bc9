/* The results of `eval --compare`, and how they are printed. */
#ifndef MGL_CLI_GENERATE_COMPARE_ROWS_H
#define MGL_CLI_GENERATE_COMPARE_ROWS_H

#include "cli/generate/compare.h"
#include "eval/compare.h"

/* A compared model. */
typedef struct mgl_cli_compare_row {
    const mgl_cli_compared *item; /* NULL: the reference */
    char dtype[8];                /* number format of activations and cache */
    uint64_t weight_bytes;
    mgl_eval_comparison sums;
    size_t *equal_tokens; /* owned (replies) */
    size_t equal_replies;
} mgl_cli_compare_row;

typedef struct mgl_cli_compare_rows {
    const mgl_cli_compare *compare;
    char device[160];
    mgl_cli_compare_row reference; /* its sums: those of the first row */
    mgl_cli_compare_row *rows;     /* owned (compare->list->count) */
    size_t replies;
} mgl_cli_compare_rows;

/* Prints the table, or with --json the object. */
void mgl_cli_compare_print(const mgl_cli_compare_rows *rows);

#endif
