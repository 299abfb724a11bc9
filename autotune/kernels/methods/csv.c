/* Implements the CSV reader of csv.h. */
#include "autotune/kernels/methods/csv.h"

#include "base/memory.h"

static mgl_status begin_field(mgl_csv *c, mgl_error *err)
{
    if (c->count == MGL_CSV_FIELDS)
        return mgl_fail(err, MGL_BAD_INPUT, "CSV", "a row has more than %d fields", MGL_CSV_FIELDS);
    if (!mgl_grow((void **)&c->offsets, &c->capacity, c->count, sizeof *c->offsets))
        return mgl_fail_memory(err, sizeof *c->offsets);
    c->offsets[c->count++] = c->bytes.length;
    return MGL_OK;
}

/* Reads from after the opening quote to after the closing quote; a doubled quote is one quote. */
static mgl_status take_quoted(mgl_csv *c, mgl_error *err)
{
    while (c->at < c->end) {
        bool quote = *c->at == '"';
        if (quote && (c->at + 1 == c->end || c->at[1] != '"')) {
            c->at++;
            return MGL_OK;
        }
        mgl_text_append(&c->bytes, c->at, 1);
        c->at += quote ? 2 : 1;
    }
    return mgl_fail(err, MGL_BAD_INPUT, "CSV", "a quote is not closed: the file was cut off");
}

static mgl_status take_field(mgl_csv *c, mgl_error *err)
{
    mgl_status status = begin_field(c, err);
    if (!status && c->at < c->end && *c->at == '"') {
        c->at++;
        status = take_quoted(c, err);
    }
    while (!status && c->at < c->end && *c->at != ',' && *c->at != '\n') {
        if (*c->at != '\r')
            mgl_text_append(&c->bytes, c->at, 1);
        c->at++;
    }
    mgl_text_append(&c->bytes, "", 1);
    return !status && c->bytes.failed ? mgl_fail_memory(err, c->bytes.length) : status;
}

mgl_status mgl_csv_next(mgl_csv *c, bool *any, mgl_error *err)
{
    mgl_status status = MGL_OK;
    c->count = 0;
    c->bytes.length = 0;
    *any = c->at < c->end;
    for (bool more = *any; more && !status;) {
        status = take_field(c, err);
        more = !status && c->at < c->end && *c->at == ',';
        c->at += c->at < c->end;
    }
    return status;
}

const char *mgl_csv_field(const mgl_csv *c, size_t index)
{
    return index < c->count ? c->bytes.bytes + c->offsets[index] : "";
}

void mgl_csv_clear(mgl_csv *c)
{
    mgl_text_clear(&c->bytes);
    mgl_free(c->offsets);
    *c = (mgl_csv){0};
}
