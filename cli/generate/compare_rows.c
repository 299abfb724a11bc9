/* Implements compare_rows.h. */
#include "cli/generate/compare_rows.h"

#include "base/format.h"
#include "base/json_out.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

/* Mean number of equal tokens at the begin of a reply. */
static double mean_equal(const mgl_cli_compare_row *row, size_t replies)
{
    double sum = 0;
    for (size_t i = 0; i < replies; i++)
        sum += (double)row->equal_tokens[i];
    return replies ? sum / (double)replies : 0;
}

static double share_agreed(const mgl_cli_compare_row *row)
{
    return (double)row->sums.agreed / (double)row->sums.tokens;
}

/* ---- the table ------------------------------------------------------------------------------- */

static int name_width(const mgl_cli_compare_rows *rows)
{
    size_t width = strlen("f32 (reference)");
    for (size_t i = 0; i < rows->compare->list->count; i++) {
        const size_t length = strlen(rows->compare->list->items[i].name);
        width = length > width ? length : width;
    }
    return width < 60 ? (int)width : 60;
}

static void print_head(const mgl_cli_compare_rows *rows)
{
    const mgl_eval_comparison *sums = &rows->reference.sums;
    mgl_cli_printf("texts    %zu\ntokens   %zu\n", sums->texts, sums->tokens);
    if (rows->compare->stride)
        mgl_cli_printf("windows  %zu\n", sums->windows);
    mgl_cli_printf("replies  %zu, greedy, of up to %d tokens\n\n", rows->replies,
                   rows->compare->greedy);
    mgl_cli_printf("%-*s  %-5s  %10s  %12s  %10s  %10s  %7s  %10s  %7s\n", name_width(rows),
                   "format", "dtype", "weights MB", "perplexity", "KL mean", "KL 99.9 %", "top-1 %",
                   "divergence", "equal");
}

static void print_row(const mgl_cli_compare_rows *rows, const mgl_cli_compare_row *row)
{
    char equal[48];
    mgl_format_into(equal, sizeof equal, "%zu/%zu", row->equal_replies, rows->replies);
    mgl_cli_printf("%-*s  %-5s  %10.1f  %12.6f  %10.3e  %10.3e  %7.2f  %10.1f  %7s\n",
                   name_width(rows), row->item->name, row->dtype, (double)row->weight_bytes * 1e-6,
                   row->sums.perplexity, row->sums.kl_mean, row->sums.kl_quantile,
                   100 * share_agreed(row), mean_equal(row, rows->replies), equal);
}

static void print_table(const mgl_cli_compare_rows *rows)
{
    const mgl_cli_compare_row *r = &rows->reference;
    print_head(rows);
    mgl_cli_printf("%-*s  %-5s  %10.1f  %12.6f\n", name_width(rows), "f32 (reference)", r->dtype,
                   (double)r->weight_bytes * 1e-6, r->sums.reference_perplexity);
    for (size_t i = 0; i < rows->compare->list->count; i++)
        print_row(rows, &rows->rows[i]);
}

/* ---- the object ------------------------------------------------------------------------------ */

static void put_reference(mgl_json_out *out, const mgl_cli_compare_row *reference)
{
    mgl_json_out_object(out, "reference");
    mgl_json_out_string(out, "dtype", reference->dtype);
    mgl_json_out_int(out, "weight_bytes", (int64_t)reference->weight_bytes);
    mgl_json_out_double(out, "nll", reference->sums.reference_nll);
    mgl_json_out_double(out, "perplexity", reference->sums.reference_perplexity);
    mgl_json_out_close_object(out);
}

static void put_divergence(mgl_json_out *out, const mgl_cli_compare_row *row, size_t replies)
{
    mgl_json_out_object(out, "first_divergence");
    mgl_json_out_double(out, "mean", mean_equal(row, replies));
    mgl_json_out_int(out, "equal_replies", (int64_t)row->equal_replies);
    mgl_json_out_array(out, "equal_tokens");
    for (size_t i = 0; i < replies; i++)
        mgl_json_out_int(out, NULL, (int64_t)row->equal_tokens[i]);
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

static void put_row(mgl_json_out *out, const mgl_cli_compare_row *row, size_t replies)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "format", row->item->name);
    mgl_json_out_string(out, "path", row->item->path);
    mgl_json_out_string(out, "dtype", row->dtype);
    mgl_json_out_int(out, "weight_bytes", (int64_t)row->weight_bytes);
    mgl_json_out_double(out, "nll", row->sums.nll);
    mgl_json_out_double(out, "perplexity", row->sums.perplexity);
    mgl_json_out_double(out, "kl_mean", row->sums.kl_mean);
    mgl_json_out_double(out, "kl_p999", row->sums.kl_quantile);
    mgl_json_out_double(out, "top1_agreement", share_agreed(row));
    put_divergence(out, row, replies);
    mgl_json_out_close_object(out);
}

static void print_json(const mgl_cli_compare_rows *rows)
{
    const mgl_cli_compare *c = rows->compare;
    const mgl_eval_comparison *sums = &rows->reference.sums;
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.eval_compare/1");
    mgl_json_out_string(&out, "model", c->model);
    mgl_json_out_string(&out, "device", rows->device);
    mgl_json_out_int(&out, "texts", (int64_t)sums->texts);
    mgl_json_out_int(&out, "tokens", (int64_t)sums->tokens);
    mgl_json_out_int(&out, "windows", (int64_t)sums->windows);
    mgl_json_out_int(&out, "capacity", (int64_t)sums->capacity);
    if (c->stride)
        mgl_json_out_int(&out, "stride", (int64_t)c->stride);
    else
        mgl_json_out_null(&out, "stride");
    mgl_json_out_object(&out, "greedy");
    mgl_json_out_int(&out, "replies", (int64_t)rows->replies);
    mgl_json_out_int(&out, "prompt_tokens", MGL_CLI_GREEDY_PROMPT);
    mgl_json_out_int(&out, "max_tokens", c->greedy);
    mgl_json_out_close_object(&out);
    put_reference(&out, &rows->reference);
    mgl_json_out_array(&out, "formats");
    for (size_t i = 0; i < c->list->count; i++)
        put_row(&out, &rows->rows[i], rows->replies);
    mgl_json_out_close_array(&out);
    mgl_cli_end_json(&out);
}

void mgl_cli_compare_print(const mgl_cli_compare_rows *rows)
{
    if (rows->compare->json)
        print_json(rows);
    else
        print_table(rows);
}
