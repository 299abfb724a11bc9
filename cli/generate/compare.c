/*
 * Implements compare.h. The reference stays open. Each item of the list is opened after the item
 * before it was closed. A format is quantized into a temporary folder, which is removed when the
 * model is open.
 */
#include "cli/generate/compare.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/generate/calibration.h"
#include "cli/generate/compare_rows.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "importer/checkpoint.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A comparison in progress. */
typedef struct session {
    const mgl_cli_compare *compare;
    mgl_cli_compare_rows rows;
    mgl_model *reference;
    mgl_model_facts facts; /* of the reference */
    mgl_ids *replies;      /* owned (rows.replies) of the reference */
    mgl_cli_reading reading;
} session;

/* ---- checks before anything is opened -------------------------------------------------------- */

/* Codes are never rounded a second time. */
static mgl_status check_formats(const mgl_cli_compare *c, const mgl_checkpoint *model,
                                mgl_error *err)
{
    const mgl_cli_compared *item = NULL;
    for (size_t i = 0; i < c->list->count && !item; i++)
        if (!c->list->items[i].is_path && !c->list->items[i].dtype)
            item = &c->list->items[i];
    if (!item || (model->files && !model->quantized))
        return MGL_OK;
    return mgl_fail(err, MGL_BAD_INPUT, c->model,
                    "is %s already and cannot be rounded to %.60s; give the original model, or "
                    "compare number formats and paths",
                    model->files ? "quantized" : "compiled", item->name);
}

static mgl_status fail_tokenizer(const mgl_cli_compare *c, const char *name, const char *what,
                                 size_t index, mgl_error *err)
{
    return mgl_fail(err, MGL_BAD_INPUT, name,
                    "has another tokenizer than %.200s: %s %zu differs; compare checkpoints of one "
                    "model",
                    c->model, what, index);
}

static mgl_status compare_token(const mgl_cli_compare *c, const char *name, const mgl_tokenizer *a,
                                const mgl_tokenizer *b, int32_t id, mgl_error *err)
{
    char *x = NULL, *y = NULL;
    size_t m = 0, n = 0;
    mgl_status status = mgl_tokenizer_token(a, id, &x, &m, err);
    if (!status)
        status = mgl_tokenizer_token(b, id, &y, &n, err);
    if (!status && (m != n || memcmp(x, y, n) != 0))
        status = fail_tokenizer(c, name, "the token of id", (size_t)id, err);
    mgl_text_free(x);
    mgl_text_free(y);
    return status;
}

/* Ids of a list may be outside the vocabulary of the tokenizer: tables of a model may be padded. */
static bool has_text(const mgl_tokenizer *tokenizer, const mgl_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        if (!mgl_tokenizer_knows(tokenizer, ids->ids[i]))
            return false;
    return true;
}

/* Compares how both tokenizers encode a text, given by its ids. */
static mgl_status compare_text(const mgl_cli_compare *c, const char *name, const mgl_tokenizer *a,
                               const mgl_tokenizer *b, size_t index, mgl_error *err)
{
    const mgl_ids *ids = &c->corpus->texts[index];
    char *text = NULL;
    size_t length = 0;
    mgl_ids x = {0}, y = {0};
    if (!has_text(a, ids))
        return MGL_OK;
    mgl_status status = mgl_tokenizer_decode(a, ids->ids, ids->count, true, &text, &length, err);
    if (!status)
        status = mgl_tokenizer_encode(a, text, length, true, &x, err);
    if (!status)
        status = mgl_tokenizer_encode(b, text, length, true, &y, err);
    if (!status &&
        (x.count != y.count || (x.count && memcmp(x.ids, y.ids, x.count * sizeof *x.ids) != 0)))
        status = fail_tokenizer(c, name, "the encoding of text", index, err);
    mgl_text_free(text);
    mgl_ids_clear(&x);
    mgl_ids_clear(&y);
    return status;
}

static mgl_status compare_tokenizers(const mgl_cli_compare *c, const char *name,
                                     const mgl_tokenizer *a, const mgl_tokenizer *b, mgl_error *err)
{
    const size_t x = mgl_tokenizer_size(a), y = mgl_tokenizer_size(b);
    mgl_status status =
        x == y ? MGL_OK : fail_tokenizer(c, name, "the token of id", x < y ? x : y, err);
    for (size_t id = 0; id < x && !status; id++)
        status = compare_token(c, name, a, b, (int32_t)id, err);
    for (size_t i = 0; i < c->corpus->count && !status; i++) {
        status = compare_text(c, name, a, b, i, err);
        status = status ? status : mgl_cli_check_cancel(err);
    }
    return status;
}

/* Checks the tokenizer of a path. A checkpoint without one gets the ids of MODEL. */
static mgl_status check_tokenizer(const mgl_cli_compare *c, const mgl_cli_compared *item,
                                  mgl_error *err)
{
    mgl_tokenizer *a = NULL, *b = NULL;
    bool has_a, has_b = false;
    mgl_status status = mgl_model_has_tokenizer(c->path, &has_a, err);
    if (!status && has_a)
        status = mgl_model_has_tokenizer(item->path, &has_b, err);
    if (!status && has_b)
        status = mgl_tokenizer_open(c->path, &a, err);
    if (!status && has_b)
        status = mgl_tokenizer_open(item->path, &b, err);
    if (!status && has_b)
        status = compare_tokenizers(c, item->name, a, b, err);
    mgl_tokenizer_close(a);
    mgl_tokenizer_close(b);
    return status;
}

static mgl_status check_path(const mgl_cli_compare *c, const mgl_checkpoint *model,
                             const mgl_cli_compared *item, mgl_error *err)
{
    mgl_checkpoint *other;
    mgl_status status = mgl_import(item->path, &other, err);
    if (status)
        return status;
    const int vocab = model->graph->geometry.vocab, wrong = other->graph->geometry.vocab;
    mgl_checkpoint_close(other);
    if (vocab != wrong)
        return mgl_fail(err, MGL_BAD_INPUT, item->name,
                        "has another vocabulary than %.200s: %d ids, not %d; compare checkpoints "
                        "of one model",
                        c->model, wrong, vocab);
    return check_tokenizer(c, item, err);
}

static mgl_status check_list(const mgl_cli_compare *c, mgl_error *err)
{
    mgl_checkpoint *model;
    mgl_status status = mgl_import(c->path, &model, err);
    if (status)
        return status;
    status = mgl_cli_corpus_check(c->corpus, model->graph->geometry.vocab, c->source, err);
    if (!status)
        status = check_formats(c, model, err);
    for (size_t i = 0; i < c->list->count && !status; i++)
        if (c->list->items[i].is_path)
            status = check_path(c, model, &c->list->items[i], err);
    mgl_checkpoint_close(model);
    return status;
}

/* ---- models ---------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *facts, int type, struct FTW *place)
{
    (void)facts, (void)type, (void)place;
    return remove(path), 0;
}

static void remove_folder(const char *folder)
{
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static mgl_status show(void *user, uint64_t done, uint64_t total, mgl_error *err)
{
    mgl_cli_show(user, MGL_CLI_COUNT_BYTES, done, total);
    return mgl_cli_check_cancel(err);
}

/* Quantizes the model into a folder. GPTQ is calibrated as `quantize` does it without flags. */
static mgl_status quantize(const char *path, const mgl_cli_compared *item, const char *folder,
                           mgl_error *err)
{
    mgl_cli_calibration calibration = {0};
    mgl_quantize_request request = item->request;
    mgl_quantize_report report;
    mgl_status status = MGL_OK;
    request.step = show;
    request.user = item->name;
    if (request.method == MGL_METHOD_GPTQ)
        status = mgl_cli_calibration_read(path, NULL, MGL_CLI_CALIBRATION_SAMPLES,
                                          MGL_CLI_CALIBRATION_LENGTH, &calibration, err);
    request.samples = calibration.samples;
    request.sample_count = calibration.count;
    if (!status)
        status = mgl_quantize(path, &request, folder, &report, err);
    mgl_cli_calibration_clear(&calibration);
    return status;
}

static mgl_status open_quantized(const session *s, const mgl_cli_compared *item,
                                 const mgl_open_options *open, mgl_model **out, mgl_error *err)
{
    char folder[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/megalith-eval-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return mgl_fail_path(err, folder,
                             "cannot be created for the quantized weights (TMPDIR names another "
                             "place)");
    mgl_cli_signals_leave(remove_folder, folder);
    mgl_status status = quantize(s->compare->path, item, folder, err);
    if (!status)
        status = mgl_model_open(folder, open, out, err);
    remove_folder(folder);
    mgl_cli_signals_leave(NULL, NULL);
    if (status && err && !strncmp(err->where, folder, strlen(folder)))
        err->where[0] = 0;
    return status;
}

static mgl_status open_item(const session *s, const mgl_cli_compared *item, mgl_model **out,
                            mgl_error *err)
{
    mgl_open_options open = s->compare->open;
    open.capacity = s->facts.capacity;
    open.on_stage = mgl_cli_show_stage;
    mgl_status status;
    if (item->dtype)
        open.dtype = item->dtype;
    if (item->dtype || item->is_path)
        status = mgl_model_open(item->is_path ? item->path : s->compare->path, &open, out, err);
    else
        status = open_quantized(s, item, &open, out, err);
    if (status && !item->is_path)
        mgl_error_name(err, item->name);
    return status;
}

static mgl_status read_model(void *user, const int32_t *ids, size_t count, size_t begin,
                             float *logits, mgl_error *err)
{
    return mgl_model_score_logits(user, ids, count, begin, logits, err);
}

/* ---- greedy replies -------------------------------------------------------------------------- */

static const mgl_ids *text_of_reply(const session *s, size_t reply)
{
    size_t found = 0, i = 0;
    for (; i < s->compare->corpus->count; i++)
        if (s->compare->corpus->texts[i].count && found++ == reply)
            break;
    return &s->compare->corpus->texts[i];
}

static size_t count_replies(const mgl_cli_corpus *corpus)
{
    size_t count = 0;
    for (size_t i = 0; i < corpus->count && count < MGL_CLI_GREEDY_TEXTS; i++)
        count += corpus->texts[i].count > 0;
    return count;
}

/* Generates the greedy reply to the first tokens of a text. */
static mgl_status generate(const session *s, mgl_model *model, size_t reply, mgl_ids *out,
                           mgl_error *err)
{
    const mgl_ids *text = text_of_reply(s, reply);
    const size_t room = (size_t)s->facts.capacity - 1;
    size_t prompt = text->count < MGL_CLI_GREEDY_PROMPT ? text->count : MGL_CLI_GREEDY_PROMPT;
    prompt = prompt < room ? prompt : room;
    const mgl_request request = {.size = sizeof request,
                                 .prompt = text->ids,
                                 .prompt_count = prompt,
                                 .max_tokens = s->compare->greedy};
    mgl_result result = {.size = sizeof result};
    mgl_status status = mgl_model_generate(model, &request, NULL, NULL, &result, err);
    if (!status)
        status = mgl_cli_check_cancel(err);
    if (!status) {
        *out = result.output;
        result.output = (mgl_ids){0};
    }
    mgl_result_clear(&result);
    return status;
}

static mgl_status generate_reference(session *s, mgl_error *err)
{
    mgl_status status = MGL_OK;
    s->rows.replies = s->facts.capacity > 1 ? count_replies(s->compare->corpus) : 0;
    s->replies = mgl_alloc_zero(s->rows.replies + 1, sizeof *s->replies);
    if (!s->replies)
        return mgl_fail_memory(err, (s->rows.replies + 1) * sizeof *s->replies);
    for (size_t i = 0; i < s->rows.replies && !status; i++)
        status = generate(s, s->reference, i, &s->replies[i], err);
    return status;
}

static mgl_status compare_replies(const session *s, mgl_model *model, mgl_cli_compare_row *row,
                                  mgl_error *err)
{
    const size_t count = s->rows.replies;
    mgl_status status = MGL_OK;
    row->equal_tokens = mgl_alloc_zero(count + 1, sizeof *row->equal_tokens);
    if (!row->equal_tokens)
        return mgl_fail_memory(err, (count + 1) * sizeof *row->equal_tokens);
    for (size_t i = 0; i < count && !status; i++) {
        mgl_ids reply = {0};
        const mgl_ids *wanted = &s->replies[i];
        status = generate(s, model, i, &reply, err);
        const size_t equal = mgl_eval_equal_tokens(wanted, &reply);
        row->equal_tokens[i] = equal;
        row->equal_replies += equal == wanted->count && equal == reply.count;
        mgl_ids_clear(&reply);
    }
    return status;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static bool count_window(void *user, size_t tokens)
{
    mgl_cli_reading_add(&((session *)user)->reading, tokens);
    return true;
}

static mgl_status compare_model(session *s, mgl_model *model, mgl_cli_compare_row *row,
                                mgl_error *err)
{
    const mgl_cli_compare *c = s->compare;
    const size_t vocab = (size_t)s->facts.vocab, capacity = (size_t)s->facts.capacity;
    const mgl_eval_reader reference = {s->reference, vocab, capacity, read_model};
    const mgl_eval_reader other = {model, vocab, capacity, read_model};
    const mgl_eval_options how = {.stride = c->stride, .progress = count_window, .user = s};
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_status status = mgl_model_get_facts(model, &facts, err);
    if (status)
        return status;
    snprintf(row->dtype, sizeof row->dtype, "%s", facts.dtype);
    row->weight_bytes = facts.weight_bytes;
    status = mgl_eval_compare(&reference, &other, c->corpus->texts, c->corpus->count, &how,
                              &row->sums, err);
    if (status == MGL_BAD_INPUT) {
        err->where[0] = 0;
        mgl_error_name(err, c->source);
    }
    return status ? status : compare_replies(s, model, row, err);
}

static mgl_status open_reference(session *s, mgl_error *err)
{
    mgl_open_options open = s->compare->open;
    const size_t stride = s->compare->stride;
    open.dtype = "f32";
    open.on_stage = mgl_cli_show_stage;
    mgl_status status = mgl_model_open(s->compare->path, &open, &s->reference, err);
    s->facts.size = sizeof s->facts;
    if (!status)
        status = mgl_model_get_facts(s->reference, &s->facts, err);
    if (status)
        return status;
    snprintf(s->rows.device, sizeof s->rows.device, "%s", s->facts.device);
    snprintf(s->rows.reference.dtype, sizeof s->rows.reference.dtype, "%s", s->facts.dtype);
    s->rows.reference.weight_bytes = s->facts.weight_bytes;
    for (size_t i = 0; i < s->compare->corpus->count; i++)
        s->reading.total +=
            s->compare->list->count * mgl_eval_count_read(s->compare->corpus->texts[i].count,
                                                          (size_t)s->facts.capacity, stride);
    return generate_reference(s, err);
}

static mgl_status compare_item(session *s, size_t index, mgl_error *err)
{
    mgl_model *model = NULL;
    mgl_cli_compare_row *row = &s->rows.rows[index];
    row->item = &s->compare->list->items[index];
    mgl_status status = open_item(s, row->item, &model, err);
    if (!status)
        status = compare_model(s, model, row, err);
    mgl_model_close(model);
    return status;
}

static mgl_status run(session *s, mgl_error *err)
{
    const size_t count = s->compare->list->count;
    mgl_status status = check_list(s->compare, err);
    s->rows.rows = mgl_alloc_zero(count, sizeof *s->rows.rows);
    if (!status && !s->rows.rows)
        status = mgl_fail_memory(err, count * sizeof *s->rows.rows);
    if (!status)
        status = open_reference(s, err);
    for (size_t i = 0; i < count && !status; i++)
        status = compare_item(s, i, err);
    if (!status)
        s->rows.reference.sums = s->rows.rows[0].sums;
    return status;
}

static void clear(session *s)
{
    for (size_t i = 0; s->rows.rows && i < s->compare->list->count; i++)
        mgl_free(s->rows.rows[i].equal_tokens);
    for (size_t i = 0; s->replies && i < s->rows.replies; i++)
        mgl_ids_clear(&s->replies[i]);
    mgl_free(s->rows.rows);
    mgl_free(s->replies);
    mgl_model_close(s->reference);
}

mgl_status mgl_cli_compare_run(const mgl_cli_compare *compare, mgl_error *err)
{
    const double start = mgl_clock_s();
    session s = {.compare = compare, .rows.compare = compare, .reading.verb = "eval"};
    mgl_status status = run(&s, err);
    if (!status) {
        mgl_cli_compare_print(&s.rows);
        mgl_cli_flush();
        if (!compare->quiet)
            mgl_cli_say("eval", "%zu tokens with f32 and %zu other%s in %s",
                        s.rows.reference.sums.tokens, compare->list->count,
                        compare->list->count == 1 ? "" : "s",
                        mgl_cli_format_time(mgl_clock_s() - start).text);
    }
    clear(&s);
    return status;
}
