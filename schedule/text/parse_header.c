/*
 * Parser of the header of the text form: version, target, model, limits, exec, types and the tuned
 * entry. Implements these parts of parse.h; parse.c calls them.
 */
#include "schedule/text/parse.h"

#include "base/aliases.h"

#include <stdio.h>
#include <string.h>

bool mgl_text_read_dtype(mgl_text_parser *p, mgl_dtype *out)
{
    mgl_word w;
    char name[MGL_SCAN_NAME + 1];
    if (!mgl_scan_word(p->scan, "a dtype (f32, bf16, f16, i32)", &w))
        return false;
    snprintf(name, sizeof name, "%.*s", w.length, w.at);
    if (mgl_dtype_parse(name, out))
        return true;
    return mgl_scan_fail(p->scan, w.at, p->scan->at,
                         "unknown dtype `%s`; known: f32, bf16, f16, i32", name);
}

/* "f32, bf16, ...": the list of codes, for a message. */
static void list_codes(char *to, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < MGL_CODE_COUNT && n < size; i++)
        n += (size_t)snprintf(to + n, size - n, "%s%s", i ? ", " : "",
                              mgl_weight_code_name((mgl_weight_code)i));
}

/* Reports that there is no code at the cursor. */
static bool fail_code(mgl_text_parser *p)
{
    mgl_word w;
    char codes[100], wanted[128];
    list_codes(codes, sizeof codes);
    snprintf(wanted, sizeof wanted, "a format (%s)", codes);
    return mgl_scan_word(p->scan, wanted, &w) &&
           mgl_scan_fail(p->scan, w.at, p->scan->at, "unknown weight format `%.*s`; known: %s",
                         w.length, w.at, codes);
}

bool mgl_text_read_format(mgl_text_parser *p, mgl_weight_format *out)
{
    int64_t number;
    mgl_scan_skip_blanks(p->scan);
    const char *const from = p->scan->at;
    switch (mgl_weight_format_read(&p->scan->at, p->scan->source.end, out)) {
    case MGL_FORMAT_READ:
        return true;
    case MGL_FORMAT_NO_CODE:
        return fail_code(p);
    case MGL_FORMAT_NO_SHARING:
        return mgl_scan_fail_expected(p->scan,
                                      "`row`, `tensor`, `group N` or `block ROWS COLUMNS`");
    case MGL_FORMAT_NO_GROUP: /* the scanner fails too, with its message */
        return mgl_scan_number(p->scan, "a group: a multiple of 16", MGL_MAX_WEIGHT_GROUP, &number);
    case MGL_FORMAT_NO_DTYPE:
        return mgl_text_read_dtype(p, &out->scales);
    case MGL_FORMAT_NO_SUCH_ONE:
        break;
    }
    return mgl_scan_fail(p->scan, from, p->scan->at,
                         "no format has these scales: groups are multiples of %d up to %d, scales "
                         "are f32, bf16 or f16, and e4m3 and uint4 have no zero points",
                         MGL_GROUP_UNIT, MGL_MAX_WEIGHT_GROUP);
}

/* ---- statements -------------------------------------------------------------------------- */

/* Reads the next statement, which must start with `key`. */
static bool expect_statement(mgl_text_parser *p, const char *key)
{
    if (mgl_scan_next_line(p->scan))
        return mgl_scan_expect_word(p->scan, key);
    return mgl_scan_fail(p->scan, p->scan->at, p->scan->at, "the text ends here: expected `%s`",
                         key);
}

/* ---- header --------------------------------------------------------------------------------- */

bool mgl_text_read_size_field(mgl_text_parser *p, const char *key, int64_t *out)
{
    char what[64];
    snprintf(what, sizeof what, "a number for `%s`", key);
    return mgl_scan_expect_word(p->scan, key) &&
           mgl_scan_number(p->scan, what, MGL_SCAN_NUMBER, out);
}

static bool read_field(mgl_text_parser *p, const char *key, int *out)
{
    char what[64];
    snprintf(what, sizeof what, "a number for `%s`", key);
    return mgl_scan_expect_word(p->scan, key) && mgl_scan_int(p->scan, what, out);
}

static bool read_version(mgl_text_parser *p)
{
    int version;
    if (!expect_statement(p, "megalith") ||
        !mgl_scan_int(p->scan, "the version of the text form", &version))
        return false;
    if (version != 1)
        return mgl_scan_fail(p->scan, p->scan->at - 1, p->scan->at,
                             "this is version %d of the text form; 1 is known", version);
    return mgl_scan_line_end(p->scan);
}

static bool read_target(mgl_text_parser *p)
{
    mgl_target *target = &p->program->target;
    mgl_word w;
    if (!expect_statement(p, "target") || !mgl_scan_word(p->scan, "an architecture", &w))
        return false;
    if (w.length >= (int)sizeof target->arch)
        return mgl_scan_fail(p->scan, w.at, p->scan->at, "an architecture has at most %d letters",
                             (int)sizeof target->arch - 1);
    memcpy(target->arch, w.at, (size_t)w.length);
    return read_field(p, "queues", &target->queues) &&
           mgl_text_read_size_field(p, "shared", &target->shared_bytes) &&
           mgl_scan_line_end(p->scan);
}

static bool read_model(mgl_text_parser *p)
{
    mgl_geometry *g = &p->program->geometry;
    bool ok = expect_statement(p, "model");
    for (int i = 0; i < MGL_GEOMETRY_FACT_COUNT && ok; i++) {
        const mgl_geometry_fact *fact = &mgl_geometry_facts[i];
        char what[64];
        snprintf(what, sizeof what, "a number for `%s`", fact->name);
        ok = fact->is_float ? mgl_scan_expect_word(p->scan, fact->name) &&
                                  mgl_scan_float(p->scan, what, mgl_fact_float(g, fact))
                            : read_field(p, fact->name, mgl_fact_size(g, fact));
    }
    return ok && mgl_scan_line_end(p->scan);
}

/* The optional second half of exec. Its defaults are those of a default ScheduleConfig without
 * splits. */
static bool read_stream(mgl_text_parser *p, mgl_exec *exec)
{
    mgl_schedule_config preset;
    mgl_schedule_config_default(&preset);
    exec->flight_bytes = preset.flight_bytes;
    exec->pending_bytes = MGL_PENDING_BYTES;
    exec->prefetch_bytes = preset.prefetch_bytes;
    return mgl_scan_at_line_end(p->scan) || (read_field(p, "flight", &exec->flight_bytes) &&
                                             read_field(p, "pending", &exec->pending_bytes) &&
                                             read_field(p, "prefetch", &exec->prefetch_bytes));
}

static bool read_types(mgl_text_parser *p)
{
    mgl_program *program = p->program;
    mgl_word w;
    char name[MGL_SCAN_NAME + 1];
    if (!expect_statement(p, "types") || !mgl_scan_expect_word(p->scan, "weights") ||
        !mgl_scan_word(p->scan, "a format (f32, bf16, f16)", &w))
        return false;
    snprintf(name, sizeof name, "%.*s", w.length, w.at);
    if (!mgl_dtype_parse(name, &program->weight_dtype) || program->weight_dtype == MGL_I32)
        return mgl_scan_fail(p->scan, w.at, p->scan->at,
                             "unknown weight format `%s`; known: f32, bf16, f16", name);
    program->embedding_dtype = program->exchange_dtype = program->weight_dtype;
    if (mgl_scan_take_word(p->scan, "embedding") &&
        !mgl_text_read_dtype(p, &program->embedding_dtype))
        return false;
    if (mgl_scan_take_word(p->scan, "exchange") &&
        !mgl_text_read_dtype(p, &program->exchange_dtype))
        return false;
    return mgl_scan_expect_word(p->scan, "cache") && mgl_text_read_dtype(p, &program->kv_dtype) &&
           mgl_scan_line_end(p->scan);
}

/* [share N] [unsplit N] */
static bool read_splits(mgl_text_parser *p, mgl_limits *limits)
{
    limits->share = limits->unsplit = 0;
    const bool shares = mgl_scan_take_word(p->scan, "share");
    if (shares && !mgl_scan_int(p->scan, "a number for `share`", &limits->share))
        return false;
    if (mgl_scan_at_line_end(p->scan))
        return true;
    if (!mgl_scan_take_word(p->scan, "unsplit"))
        return mgl_scan_fail_expected(p->scan, shares ? "`unsplit`" : "`share` or `unsplit`");
    return mgl_scan_int(p->scan, "a number for `unsplit`", &limits->unsplit);
}

/* [second_rows N] */
static bool read_second_rows(mgl_text_parser *p, int *rows)
{
    mgl_scan_skip_blanks(p->scan);
    const char *from = p->scan->at;
    if (!mgl_scan_take_word(p->scan, MGL_TEXT_SECOND_ROWS) &&
        !mgl_scan_take_word(p->scan, mgl_alias_published(MGL_ALIAS_KNOB, MGL_TEXT_SECOND_ROWS)))
        return true;
    return mgl_scan_int(p->scan, "a number for `" MGL_TEXT_SECOND_ROWS "`", rows) &&
           (*rows > 0 ||
            mgl_scan_fail(p->scan, from, p->scan->at,
                          "the second list has at least 1 row; leave `" MGL_TEXT_SECOND_ROWS
                          "` out for a program with one list"));
}

static bool read_limits(mgl_text_parser *p, mgl_limits *limits)
{
    return expect_statement(p, "limits") && read_field(p, "rows", &limits->rows) &&
           read_second_rows(p, &limits->second_rows) &&
           read_field(p, "sequences", &limits->sequences) &&
           read_field(p, "capacity", &limits->capacity) && read_splits(p, limits) &&
           mgl_scan_line_end(p->scan);
}

static bool read_settings(mgl_text_parser *p)
{
    mgl_exec *exec = &p->program->exec;
    return read_limits(p, &p->program->limits) && expect_statement(p, "exec") &&
           read_field(p, "page", &exec->page_bytes) && read_field(p, "ring", &exec->ring_pages) &&
           read_field(p, "warps", &exec->warps) && read_field(p, "stage", &exec->stage_bytes) &&
           read_stream(p, exec) && mgl_scan_line_end(p->scan) && read_types(p);
}

/* 64 hexadecimal digits. The text may end right after the word. */
static bool is_sha256(mgl_word word)
{
    bool fits = word.length == MGL_SHA256_HEX - 1;
    for (int i = 0; fits && i < word.length; i++)
        fits = (word.at[i] >= '0' && word.at[i] <= '9') || (word.at[i] >= 'a' && word.at[i] <= 'f');
    return fits;
}

bool mgl_text_read_tuned(mgl_text_parser *p)
{
    mgl_program *program = p->program;
    mgl_word w;
    if (!mgl_scan_word(p->scan, "the tuned entry's name", &w))
        return false;
    if (w.length > MGL_TUNED_NAME)
        return mgl_scan_fail(p->scan, w.at, p->scan->at,
                             "the name of a tuned entry has at most %d letters", MGL_TUNED_NAME);
    memcpy(program->tuned, w.at, (size_t)w.length);
    if (!mgl_scan_word(p->scan, "the tuned entry's SHA-256", &w))
        return false;
    if (!is_sha256(w))
        return mgl_scan_fail(p->scan, w.at, p->scan->at, "a SHA-256 has 64 digits, 0-9 and a-f");
    memcpy(program->tuned_digest, w.at, (size_t)w.length);
    return true;
}

bool mgl_text_read_header(mgl_text_parser *p)
{
    return read_version(p) && read_target(p) && read_model(p) && read_settings(p);
}
