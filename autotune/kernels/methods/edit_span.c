/*
 * Implements edit spans: builds the task from templates, and judges answers inside the whole text.
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

static void put_unit(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.work->unit);
}

static void put_op(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.work->op);
}

static void put_arch(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.work->arch);
}

static void put_context(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.work->context ? s->options.work->context : "");
}

/* Without the final line end. */
static void put_known(const mgl_edit_span *s, mgl_text *out)
{
    const char *known = s->options.work->known;
    size_t length = known ? strlen(known) : 0;
    if (length)
        mgl_text_append(out, known, known[length - 1] == '\n' ? length - 1 : length);
    else
        mgl_text_put(out, "nothing");
}

static void put_instruction(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.instruction);
}

static void put_region(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, mgl_kernel_region_name(s->options.region));
}

static void put_text(const mgl_edit_span *s, mgl_text *out)
{
    size_t length = s->text.length;
    mgl_text_append(out, s->text.bytes,
                    length && s->text.bytes[length - 1] == '\n' ? length - 1 : length);
}

static void put_declarations_used(const mgl_edit_span *s, mgl_text *out)
{
    if (s->called.length)
        mgl_text_append(out, s->called.bytes,
                        s->called.length - 1); /* without the final line end */
}

static void put_words(const mgl_edit_span *s, mgl_text *out)
{
    (void)s;
    mgl_declarations_put_words(out);
}

static void put_border(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_format(out, "%016" PRIx64, s->border);
}

static void put_transformation(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.place.transformation->name);
}

static void put_summary(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.place.transformation->summary);
}

static void put_pass(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_format(out, "%d", s->options.place.pass + 1);
}

static void put_passes(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_format(out, "%d", s->options.place.transformation->pass_count);
}

static void put_pass_name(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out, s->options.place.transformation->passes[s->options.place.pass].name);
}

static void put_broken(const mgl_edit_span *s, mgl_text *out)
{
    mgl_text_put(out,
                 s->options.broken
                     ? "The file may be broken behind this call; later calls go on from it."
                     : "The file has to be right behind this call: it is compiled and judged.");
}

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

static void put_part(const void *user, const char *name, size_t length, mgl_text *out)
{
    static const struct {
        const char *name;
        void (*put)(const mgl_edit_span *, mgl_text *);
    } parts[] = {{"unit", put_unit},
                 {"op", put_op},
                 {"arch", put_arch},
                 {"context", put_context},
                 {"known", put_known},
                 {"instruction", put_instruction},
                 {"region", put_region},
                 {"text", put_text},
                 {"called", put_declarations_used},
                 {"words", put_words},
                 {"border", put_border},
                 {"transformation", put_transformation},
                 {"summary", put_summary},
                 {"pass", put_pass},
                 {"passes", put_passes},
                 {"pass_name", put_pass_name},
                 {"broken", put_broken},
                 {"tunables", put_tunables}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].name) == length && !memcmp(parts[i].name, name, length))
            parts[i].put(user, out);
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

/* ---- the judge ------------------------------------------------------------------------------- */

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

static mgl_status judge(void *user, const char *text, size_t length,
                        const mgl_tunable_value *values, int count, mgl_loop_verdict *out,
                        mgl_error *err)
{
    mgl_edit_span *s = user;
    const mgl_loop_judge *whole = &s->options.work->judge;
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
    return s->options.broken || !whole->judge
               ? MGL_OK
               : whole->judge(whole->user, s->made.bytes, s->made.length, values, count, out, err);
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
        .max_tokens = w->max_tokens,
        .seed = s->border,
        .judge = {judge, s},
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
    size_t ignored;
    *length = s->made.length;
    return mgl_feedback_code(s->loop, &ignored) ? s->made.bytes : NULL;
}

const char *mgl_edit_span_before(const mgl_edit_span *s, size_t *length)
{
    *length = s->text.length;
    return s->text.bytes;
}
