/*
 * Implements edit spans: builds the task from templates, and evaluates answers inside the whole
 * text.
 */
#include "autotune/kernels/methods/edit_span.h"

#include "autotune/agents/prompt.h"
#include "autotune/kernels/methods/declarations.h"
#include "base/draw.h"
#include "base/format.h"
#include "base/memory.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

struct mgl_edit_span {
    mgl_edit_span_options options; /* text and instruction point to copies owned by the span */
    mgl_text text, task, made;
    mgl_text called; /* declarations of other files that the text uses */
    mgl_feedback *loop;
    uint64_t border;
};

/* ---- the task -------------------------------------------------------------------------------- */

static void put_tunables(const mgl_edit_span *s, mgl_text *out)
{
    const mgl_transformation *t = s->options.place.transformation;
    for (int i = 0; i < t->tunable_count; i++) {
        mgl_text_put(out, i ? ", TUNE_" : "TUNE_");
        for (const char *at = t->tunables[i].name; *at; at++)
            mgl_text_format(out, "%c", toupper((unsigned char)*at));
        mgl_text_put(out, " (");
        for (int v = 0; v < t->tunables[i].count; v++)
            mgl_text_format(out, "%s%" PRId64, v ? ", " : "", t->tunables[i].values[v]);
        mgl_text_put(out, ")");
    }
    if (!t->tunable_count)
        mgl_text_put(out, "none");
}

/* Without the final line end: the template has one. */
static void put_lines(const char *text, mgl_text *out)
{
    size_t length = text ? strlen(text) : 0;
    mgl_text_append(out, text ? text : "",
                    length && text[length - 1] == '\n' ? length - 1 : length);
}

/* Fills the parts of a template that belong to a transformation. */
static void put_place(const mgl_edit_span *s, const char *name, mgl_text *out)
{
    const mgl_transformation *t = s->options.place.transformation;
    const int pass = s->options.place.pass;
    if (!strcmp(name, "transformation"))
        mgl_text_put(out, t->name);
    else if (!strcmp(name, "summary"))
        mgl_text_put(out, t->summary);
    else if (!strcmp(name, "pass"))
        mgl_text_format(out, "%d", pass + 1);
    else if (!strcmp(name, "passes"))
        mgl_text_format(out, "%d", t->pass_count);
    else if (!strcmp(name, "pass_name"))
        mgl_text_put(out, t->passes[pass].name);
    else if (!strcmp(name, "tunables"))
        put_tunables(s, out);
}

static void put_part(const void *user, const char *name, size_t length, mgl_text *out)
{
    const mgl_edit_span *s = user;
    const mgl_work *w = s->options.work;
    const struct {
        const char *name, *text;
    } parts[] = {{"unit", w->unit},
                 {"op", w->op},
                 {"arch", w->arch},
                 {"context", w->context},
                 {"instruction", s->options.instruction},
                 {"region", mgl_kernel_region_name(s->options.region)},
                 {"text", s->text.bytes},
                 {"called", s->called.bytes},
                 {"known", w->known ? w->known : "nothing"},
                 {"broken",
                  s->options.broken
                      ? "The file may be broken after this call; later calls continue from it."
                      : "The file must be correct after this call: it is compiled and evaluated."}};
    char key[32];
    mgl_format_into(key, sizeof key, "%.*s", (int)length, name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i].name, key))
            put_lines(parts[i].text, out);
    if (!strcmp(key, "words"))
        mgl_declarations_put_words(out);
    else if (!strcmp(key, "border"))
        mgl_text_format(out, "%016" PRIx64, s->border);
    else if (s->options.place.transformation)
        put_place(s, key, out);
}

static mgl_status make_task(mgl_edit_span *s, mgl_error *err)
{
    const mgl_kernel_unit *unit = mgl_kernel_unit_find(s->options.work->unit);
    mgl_status status =
        unit ? mgl_declarations_put(unit, s->text.bytes, s->text.length, &s->called, err) : MGL_OK;
    const char *name = s->options.place.transformation ? "autotune/kernels/methods/prompts/pass.md"
                                                       : "autotune/kernels/methods/prompts/task.md";
    mgl_prompt_fill(mgl_prompt_find(name), put_part, s, &s->task);
    return status;
}

/* ---- the evaluator --------------------------------------------------------------------------- */

/* Whether an answer is a whole text, that is, contains region marks. */
static bool has_marks(const char *text, size_t length)
{
    static const char mark[] = "/* region: ";
    for (const char *at = text, *end = text + length; at < end;) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        if ((size_t)(end - at) >= sizeof mark - 1 && !memcmp(at, mark, sizeof mark - 1))
            return true;
        at = next ? next + 1 : end;
    }
    return false;
}

/* Builds the whole text from an answer. MGL_BAD_INPUT: a byte outside the region differs. */
static mgl_status compose(mgl_edit_span *s, const char *text, size_t length, mgl_error *err)
{
    mgl_text_clear(&s->made);
    if (!has_marks(text, length))
        return mgl_kernel_region_replace(s->text.bytes, s->text.length, s->options.region, text,
                                         length, &s->made, err);
    mgl_text_append(&s->made, text, length);
    return s->made.failed ? mgl_fail_memory(err, length)
                          : mgl_kernel_regions_compare(s->text.bytes, s->text.length, text, length,
                                                       s->options.region, err);
}

static mgl_status evaluate(void *user, const char *text, size_t length,
                           const mgl_kernel_value *values, int count, mgl_trial_verdict *out,
                           mgl_error *err)
{
    mgl_edit_span *s = user;
    const mgl_evaluator *whole = &s->options.work->evaluator;
    mgl_error why = {0};
    mgl_status status = compose(s, text, length, &why);
    if (status == MGL_NO_MEMORY)
        return mgl_fail_memory(err, length);
    if (status) {
        out->outcome = MGL_OUTCOME_REGION_VIOLATION;
        mgl_format_ends(out->diagnostic, sizeof out->diagnostic, "%s at %s:%s: %s",
                        mgl_outcome_name(out->outcome), s->options.work->unit, why.where,
                        why.message);
        return MGL_OK;
    }
    out->outcome = MGL_OUTCOME_UNMEASURED;
    return s->options.broken || !whole->evaluate
               ? MGL_OK
               : whole->evaluate(whole->user, s->made.bytes, s->made.length, values, count, out,
                                 err);
}

/* ---- life of an edit span -------------------------------------------------------------------- */

static mgl_status check_region(const mgl_edit_span *s, mgl_error *err)
{
    mgl_kernel_regions regions;
    mgl_kernel_region region = s->options.region;
    mgl_status status = mgl_kernel_regions_find(s->text.bytes, s->text.length, &regions, err);
    if (!status && (region == MGL_KERNEL_REGION_ANY || regions.of[region].first == 0))
        status = mgl_fail(err, MGL_BAD_INPUT, s->options.work->unit, "it has no region `%s`",
                          mgl_kernel_region_name(region));
    return status;
}

static mgl_status open_loop(mgl_edit_span *s, mgl_error *err)
{
    const mgl_work *w = s->options.work;
    const mgl_feedback_options options = {
        .model = w->model,
        .system = mgl_prompt_find("autotune/kernels/methods/prompts/system.md"),
        .task = s->task.bytes,
        .calls = s->options.calls,
        .seed = s->border,
        .evaluator = {evaluate, s},
        .on_call = w->on_call,
        .user = w->user};
    return mgl_feedback_open(&options, &s->loop, err);
}

mgl_status mgl_edit_span_open(const mgl_edit_span_options *options, mgl_edit_span **out,
                              mgl_error *err)
{
    mgl_edit_span *s = mgl_alloc_zero(1, sizeof *s);
    *out = NULL;
    if (!s)
        return mgl_fail_memory(err, sizeof *s);
    s->options = *options;
    uint64_t state =
        options->work->seed + 97 * (uint64_t)options->place.pass + (uint64_t)options->place.region;
    s->border = mgl_draw(&state);
    mgl_text_append(&s->text, options->text, options->length);
    mgl_status status = s->text.failed ? mgl_fail_memory(err, options->length) : MGL_OK;
    if (!status)
        status = check_region(s, err);
    if (!status)
        status = make_task(s, err);
    if (!status && s->task.failed)
        status = mgl_fail_memory(err, options->length);
    if (!status)
        status = open_loop(s, err);
    if (status)
        mgl_edit_span_close(s);
    else
        *out = s;
    return status;
}

void mgl_edit_span_close(mgl_edit_span *s)
{
    if (!s)
        return;
    mgl_feedback_close(s->loop);
    mgl_text_clear(&s->text);
    mgl_text_clear(&s->task);
    mgl_text_clear(&s->made);
    mgl_text_clear(&s->called);
    mgl_free(s);
}

mgl_feedback *mgl_edit_span_loop(mgl_edit_span *s)
{
    return s->loop;
}

const char *mgl_edit_span_text(const mgl_edit_span *s, size_t *length)
{
    *length = s->made.length;
    return mgl_feedback_code(s->loop) ? s->made.bytes : NULL;
}

const char *mgl_edit_span_before(const mgl_edit_span *s, size_t *length)
{
    *length = s->text.length;
    return s->text.bytes;
}
