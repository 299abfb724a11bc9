/*
 * megalith kernel transform list|show|check|apply: prints and checks transformations, and runs one
 * transformation or a whole script.
 */
#include "cli/kernel/loop.h"
#include "cli/signals.h"

#include "api/cancel.h"
#include "autotune/kernels/sessions/transform.h"
#include "base/file.h"
#include "base/memory.h"

#include <string.h>

#define TRANSFORM_OPTIONS(X)                                                                       \
    X(text, name, "--name", "NAME", 0, 0, "show, apply: a transformation")                         \
    X(text, script, "--script", "NAME", 0, 0, "show, apply: a script, such as sm_90a")             \
    X(file, file, "--file", "F.json", 0, 0, "check: your transformation or script")                \
    X(text, unit, "--unit", "UNIT", 0, 0, "apply: the micro-kernel")                               \
    X(int, carry, "--carry", "N", 1, MGL_CONFIGURATIONS_ALL,                                       \
      "apply: configurations that a step keeps (128)")                                             \
    X(int, evaluations, "--evaluations", "N", 1, MGL_CONFIGURATIONS_ALL,                           \
      "apply: largest number of configurations that a step checks (512)")                          \
    MGL_CLI_ASK_OPTIONS(X)                                                                         \
    MGL_CLI_BENCH_OPTIONS(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(TRANSFORM_OPTIONS)

/* ---- list ------------------------------------------------------------------------------------ */

static mgl_status list(const struct options *o, const mgl_library *library, mgl_error *err)
{
    mgl_json_out out = {0};
    (void)err;
    if (!o->json.given) {
        for (size_t i = 0; i < library->count; i++) {
            const mgl_transformation *t = &library->list[i];
            mgl_cli_printf("%-18s %2d pass%s %2d call%s  %s\n", t->name, t->pass_count,
                           t->pass_count == 1 ? "  " : "es", mgl_transformation_calls(t),
                           mgl_transformation_calls(t) == 1 ? " " : "s", t->summary);
        }
        for (size_t i = 0; i < library->script_count; i++)
            mgl_cli_printf("script %-11s %s\n", library->scripts[i].name,
                           library->scripts[i].summary);
        return MGL_OK;
    }
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_transform_put_library(library, &out);
    mgl_cli_end_json(&out);
    return MGL_OK;
}

/* ---- show, check ----------------------------------------------------------------------------- */

static void print_names(const char *what, const mgl_names *names)
{
    mgl_cli_printf("%-13s", what);
    for (int i = 0; i < names->count; i++)
        mgl_cli_printf(" %s", names->names[i]);
    mgl_cli_put(names->count ? "\n" : " nothing\n");
}

static void print_transformation(const mgl_transformation *t)
{
    mgl_cli_printf("%s: %s\n", t->name, t->summary);
    print_names("ops", &t->ops);
    print_names("architectures", &t->architectures);
    print_names("requires", &t->requires);
    print_names("provides", &t->provides);
    for (int i = 0; i < t->tunable_count; i++) {
        mgl_cli_printf("tunable       %s:", t->tunables[i].name);
        for (int v = 0; v < t->tunables[i].count; v++)
            mgl_cli_printf(" %lld", (long long)t->tunables[i].values[v]);
        mgl_cli_put("\n");
    }
    for (int i = 0; i < t->pass_count; i++) {
        const mgl_pass *p = &t->passes[i];
        mgl_cli_printf("\npass %d, %s:", i + 1, p->name);
        for (int r = 0; r < p->region_count; r++)
            mgl_cli_printf(" %s", mgl_kernel_region_name(p->regions[r]));
        mgl_cli_printf("; %d retr%s%s\n", p->retries, p->retries == 1 ? "y" : "ies",
                       p->may_break ? "; may fail" : "");
        mgl_cli_put_wrapped("  ", p->instruction);
    }
}

static mgl_status show(const struct options *o, const mgl_library *library, mgl_error *err)
{
    mgl_transform found;
    mgl_json_out out = {0};
    mgl_status status = mgl_transform_find(library, o->name.value, o->script.value, &found, err);
    if (status)
        return status;
    if (o->json.given) {
        mgl_json_out_begin(&out, "megalith.kernel/1");
        mgl_transform_put(&found, &out);
        mgl_cli_end_json(&out);
    } else if (found.transformation) {
        print_transformation(found.transformation);
    } else {
        mgl_cli_printf("%s, for %s: %s\n", found.script->name, found.script->architecture,
                       found.script->summary);
        print_names("steps", &found.script->steps);
    }
    return MGL_OK;
}

static mgl_status check(const struct options *o, const mgl_library *library, mgl_error *err)
{
    mgl_transform_checked checked = {0};
    const mgl_transformation *t = &checked.transformation;
    char *text = NULL;
    size_t length = 0;
    if (!o->file.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--file is missing; give the file to check");
    mgl_status status = mgl_file_read(o->file.value, MGL_TRANSFORM_MAX_TEXT, &text, &length, err);
    if (!status)
        status = mgl_transform_check(library, text, length, o->file.value, &checked, err);
    if (!status && checked.is_script)
        mgl_cli_printf("script %s: %d steps\n", checked.script.name, checked.script.steps.count);
    else if (!status)
        mgl_cli_printf("%s: %d passes, %d calls\n", t->name, t->pass_count,
                       mgl_transformation_calls(t));
    mgl_transform_checked_clear(&checked);
    mgl_free(text);
    return status;
}

/* ---- apply ----------------------------------------------------------------------------------- */

typedef struct telling {
    bool json;
    mgl_json_out out;
    mgl_outcome last; /* outcome of the last step that ran */
} telling;

static void on_step(void *user, const mgl_step_report *step)
{
    telling *t = user;
    if (step->end == MGL_STEP_DONE && step->verdict)
        t->last = step->verdict->outcome;
    if (t->json)
        mgl_transform_put_step(step, &t->out);
    else
        mgl_cli_printf("%-18s %-8s %2d calls, %d of %d configurations  %s\n",
                       step->transformation->name, mgl_step_end_name(step->end), step->calls,
                       step->carried, step->evaluated, mgl_transform_why(step));
}

static void tell_result(telling *t, const mgl_script_engine_result *result)
{
    if (t->json) {
        mgl_json_out_close_array(&t->out);
        mgl_transform_put_result(result, &t->out);
        mgl_cli_end_json(&t->out);
    } else {
        mgl_cli_printf("%d done, %d failed, %d skipped, %d calls%s%s\n", result->done,
                       result->failed, result->left_out, result->calls, result->stopped ? "; " : "",
                       result->stopped ? mgl_outcome_name(result->stopped) : "");
    }
    mgl_cli_end_with(t->last < MGL_OUTCOME_COUNT ? mgl_outcome_exit(t->last) : MGL_EXIT_REFUSED);
}

static mgl_status apply_to(const struct options *o, mgl_kernel_store *b,
                           mgl_model_client *model_client, mgl_error *err)
{
    telling t = {.json = o->json.given, .last = MGL_OUTCOME_COUNT};
    const mgl_transform_options options = {.name = o->name.value,
                                           .script = o->script.value,
                                           .carry = (int)o->carry.value,
                                           .evaluations = (int)o->evaluations.value,
                                           .on_step = on_step,
                                           .user = &t,
                                           .abort = mgl_cancel_flag(mgl_cli_cancel())};
    mgl_script_engine_result result;
    if (t.json) {
        mgl_json_out_begin(&t.out, "megalith.kernel/1");
        mgl_json_out_string(&t.out, "unit", b->unit->name);
        mgl_json_out_array(&t.out, "steps");
    }
    mgl_status status = mgl_transform_apply(b, &options, model_client, &result, err);
    if (!status)
        tell_result(&t, &result);
    mgl_text_clear(&t.out.text);
    return status;
}

static mgl_status apply(const struct options *o, mgl_error *err)
{
    mgl_kernel_store_options how = MGL_CLI_BENCH(o);
    const mgl_cli_ask ask = MGL_CLI_ASK(o);
    mgl_kernel_store b = {0};
    mgl_model_client *model_client = NULL;
    how.model = ask.model;
    if (!o->unit.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--unit is missing; name the micro-kernel");
    mgl_status status = mgl_cli_model_client_open(&ask, &model_client, err);
    if (!status && !model_client)
        status = mgl_fail(err, MGL_USAGE, "--proposer",
                          "is missing or external; give scripted:FILE or chat, or use `megalith "
                          "kernel prompt --transform` for each pass");
    if (!status)
        status = mgl_kernel_store_open(o->unit.value, &how, &b, err);
    if (!status)
        status = apply_to(o, &b, model_client, err);
    mgl_model_client_close(model_client);
    mgl_kernel_store_close(&b);
    return status;
}

static mgl_status transform(const char *operand, const void *options, mgl_error *err)
{
    typedef mgl_status word_fn(const struct options *, const mgl_library *, mgl_error *);
    static const struct {
        const char *word;
        word_fn *run;
    } rows[] = {{"list", list}, {"show", show}, {"check", check}};
    const struct options *o = options;
    if (!strcmp(operand, "apply"))
        return apply(o, err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(operand, rows[i].word)) {
            mgl_library library = {0};
            mgl_status status = mgl_kernel_store_library(o->transformations.value, &library, err);
            if (!status)
                status = rows[i].run(o, &library, err);
            mgl_library_clear(&library);
            return status;
        }
    return mgl_fail(err, MGL_USAGE, operand,
                    "unknown action; supported: list, show, check and apply");
}

const mgl_cli_verb mgl_cli_kernel_transform_verb = {
    .name = "kernel transform",
    .operand = "WORD",
    .summary = "lists, shows and checks transformations, or applies a transformation or a script",
    .example = "  megalith kernel transform show --name split_k\n"
               "  megalith kernel transform apply --script sm_90a --unit merge --proposer "
               "scripted:a.json",
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = transform,
};
