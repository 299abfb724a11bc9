/*
 * Prints the rows of `bench`: JSON, and two tables on standard output, one for decoding and one for
 * prompts. cli/schedule/bench.c calls it.
 */
#ifndef MGL_CLI_SCHEDULE_BENCH_ROWS_H
#define MGL_CLI_SCHEDULE_BENCH_ROWS_H

#include "base/json_out.h"
#include "eval/bench.h"

/* The measurements, in the order of the rows. */
typedef struct mgl_cli_bench_rows {
    const char *shape;  /* name of the shape, or MODEL */
    const char *config; /* file of --config, or NULL */
    const mgl_bench_request *request;
    const mgl_bench_result *rows; /* (count) all for decoding, or all for prompts */
    size_t count;
} mgl_cli_bench_rows;

/* Adds the fields of a "megalith.bench/1" to the open object: "rows" for decoding, "prompts" for
 * prompts. The other array is empty. */
void mgl_cli_bench_put(mgl_json_out *out, const mgl_cli_bench_rows *of);

/* The table: its head, row `index`, and the lines below the table. */
void mgl_cli_bench_print_head(const mgl_cli_bench_rows *of);
void mgl_cli_bench_print_row(const mgl_cli_bench_rows *of, size_t index);
void mgl_cli_bench_print_foot(const mgl_cli_bench_rows *of);

#endif
