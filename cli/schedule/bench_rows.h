/* What `bench` shows of its rows: JSON, and two tables on standard output, one of decoding and one
 * of prompts. */
#ifndef MGL_CLI_SCHEDULE_BENCH_ROWS_H
#define MGL_CLI_SCHEDULE_BENCH_ROWS_H

#include "base/json_out.h"
#include "eval/bench.h"

/* What was measured, in the order of the rows. */
typedef struct mgl_cli_bench_rows {
    const char *shape;  /* its name, or MODEL */
    const char *config; /* file of --config, or NULL */
    const mgl_bench_request *request;
    const mgl_bench_result *rows; /* (count) all decoding, or all prompts */
    size_t count;
} mgl_cli_bench_rows;

/* The fields of a "megalith.bench/1" into the object that is open: of decoding "rows", of prompts
 * "prompts", the other array being empty. */
void mgl_cli_bench_put(mgl_json_out *out, const mgl_cli_bench_rows *of);

/* The table: its head, row `index`, and what stands below it. */
void mgl_cli_bench_print_head(const mgl_cli_bench_rows *of);
void mgl_cli_bench_print_row(const mgl_cli_bench_rows *of, size_t index);
void mgl_cli_bench_print_foot(const mgl_cli_bench_rows *of);

#endif
