/* Implements diff.h. Both fact lists are sorted, so one merge pass finds the differences. */
#include "autotune/kernels/ptx/diff.h"

#include "base/memory.h"

#include <string.h>

/* The facts of one feature: [from, to). */
typedef struct span {
    const mgl_ptx_fact *facts;
    size_t from, to;
} span;

static span next_span(const mgl_ptx_condensed *c, size_t from)
{
    size_t to = from;
    while (to < c->total_count && !strcmp(c->totals[to].feature, c->totals[from].feature))
        to++;
    return (span){c->totals, from, to};
}

static bool same_values(span a, span b, bool counts)
{
    if (a.to - a.from != b.to - b.from)
        return false;
    for (size_t i = 0; i < a.to - a.from; i++) {
        const mgl_ptx_fact *x = &a.facts[a.from + i], *y = &b.facts[b.from + i];
        bool number = !*x->value; /* a numeric feature: the count is its value */
        if (strcmp(x->value, y->value) != 0 || ((counts || number) && x->count != y->count))
            return false;
    }
    return true;
}

static char *write_span(span s)
{
    mgl_text text = {0};
    mgl_text_put(&text, "");
    for (size_t i = s.from; i < s.to; i++)
        mgl_text_format(&text, "%s%s%s%lld", i > s.from ? ", " : "", s.facts[i].value,
                        *s.facts[i].value ? ": " : "", (long long)s.facts[i].count);
    if (text.failed)
        mgl_text_clear(&text);
    return text.bytes;
}

static mgl_status add_row(mgl_ptx_diff *out, const char *feature, span a, span b, mgl_error *err)
{
    if (same_values(a, b, true))
        return MGL_OK;
    if (!mgl_grow((void **)&out->rows, &out->capacity, out->count, sizeof *out->rows))
        return mgl_fail_memory(err, sizeof *out->rows);
    mgl_ptx_difference *row = &out->rows[out->count++];
    *row = (mgl_ptx_difference){mgl_strdup(feature), write_span(a), write_span(b),
                                same_values(a, b, false)};
    return row->feature && row->before && row->after ? MGL_OK : mgl_fail_memory(err, 64);
}

/* Compares the next features: < 0: only in `a`; 0: in both; > 0: only in `b`. */
static int compare_next(const mgl_ptx_condensed *a, size_t i, const mgl_ptx_condensed *b, size_t j)
{
    if (i >= a->total_count || j >= b->total_count)
        return i < a->total_count ? -1 : 1;
    return strcmp(a->totals[i].feature, b->totals[j].feature);
}

mgl_status mgl_ptx_diff_make(const mgl_ptx_condensed *before, const mgl_ptx_condensed *after,
                             mgl_ptx_diff *out, mgl_error *err)
{
    mgl_status status = MGL_OK;
    size_t i = 0, j = 0;
    *out = (mgl_ptx_diff){0};
    while (!status && (i < before->total_count || j < after->total_count)) {
        int order = compare_next(before, i, after, j);
        span a = {before->totals, i, i}, b = {after->totals, j, j};
        if (order <= 0)
            a = next_span(before, i);
        if (order >= 0)
            b = next_span(after, j);
        const char *feature = order <= 0 ? before->totals[i].feature : after->totals[j].feature;
        status = add_row(out, feature, a, b, err);
        i = a.to;
        j = b.to;
    }
    if (status)
        mgl_ptx_diff_clear(out);
    return status;
}

void mgl_ptx_diff_clear(mgl_ptx_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++) {
        mgl_free(diff->rows[i].feature);
        mgl_free(diff->rows[i].before);
        mgl_free(diff->rows[i].after);
    }
    mgl_free(diff->rows);
    *diff = (mgl_ptx_diff){0};
}

void mgl_ptx_diff_write(const mgl_ptx_diff *diff, bool all, mgl_text *out)
{
    for (size_t i = 0; i < diff->count; i++) {
        const mgl_ptx_difference *row = &diff->rows[i];
        if (row->counts_alone && !all)
            continue;
        mgl_text_format(out, "%s\n  - %s\n  + %s\n", row->feature,
                        *row->before ? row->before : "none", *row->after ? row->after : "none");
    }
}

void mgl_ptx_diff_put(const mgl_ptx_diff *diff, bool all, mgl_json_out *out)
{
    mgl_json_out_array(out, "differences");
    for (size_t i = 0; i < diff->count; i++) {
        const mgl_ptx_difference *row = &diff->rows[i];
        if (row->counts_alone && !all)
            continue;
        mgl_json_out_object(out, NULL);
        mgl_json_out_string(out, "feature", row->feature);
        mgl_json_out_string(out, "before", row->before);
        mgl_json_out_string(out, "after", row->after);
        mgl_json_out_bool(out, "counts_alone", row->counts_alone);
        mgl_json_out_close_object(out);
    }
    mgl_json_out_close_array(out);
}
