/* megalith kernel transform list|show|check|apply: transformations in words, and runs of one or of
 * a whole plan. */
#include "cli/kernel_loop.h"
#include "cli/signals.h"
#include "pipeline.h"

#include "autotune/loops/course.h"
#include "base/file.h"
#include "base/memory.h"

#include <string.h>

#define TRANSFORM_OPTIONS(X)                                                                       \
    X(text, name, "--name", "NAME", 0, 0, "of show and apply: a transformation")                   \
    X(text, plan, "--plan", "NAME", 0, 0, "of show and apply: a plan, sm_90a")                     \
    X(file, file, "--file", "F.json", 0, 0, "of check: a transformation or a plan of yours")       \
    X(text, unit, "--unit", "UNIT", 0, 0, "of apply: the micro-kernel")                            \
    X(int, carry, "--carry", "N", 1, MGL_CONFIGURATIONS_ALL,                                       \
      "of apply: configurations that a step carries on (128)")                                     \
    X(int, judgements, "--judgements", "N", 1, MGL_CONFIGURATIONS_ALL,                             \
      "of apply: configurations that a step judges at most (512)")                                 \
    MGL_CLI_ASK_OPTIONS(X)                                                                         \
    MGL_CLI_BENCH_OPTIONS(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(TRANSFORM_OPTIONS)

/* ---- list ------------------------------------------------------------------------------------ */

static void put_names(mgl_json_out *out, const char *key, const mgl_names *names)
{
    mgl_json_out_array(out, key);
    for (int i = 0; i < names->count; i++)
        mgl_json_out_string(out, NULL, names->names[i]);
    mgl_json_out_close_array(out);
}

static void put_row(const mgl_transformation *t, mgl_json_out *out)
{
    mgl_json_out_object(out, NULL);
    mgl_json_out_string(out, "name", t->name);
    mgl_json_out_string(out, "summary", t->summary);
    put_names(out, "ops", &t->ops);
    put_names(out, "architectures", &t->architectures);
    put_names(out, "requires", &t->requires);
    put_names(out, "provides", &t->provides);
    mgl_json_out_int(out, "passes", t->pass_count);
    mgl_json_out_int(out, "calls", mgl_transformation_calls(t));
    mgl_json_out_bool(out, "own", t->own);
    mgl_json_out_close_object(out);
}

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
        for (size_t i = 0; i < library->plan_count; i++)
            mgl_cli_printf("plan %-13s %s\n", library->plans[i].name, library->plans[i].summary);
        return MGL_OK;
    }
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_array(&out, "transformations");
    for (size_t i = 0; i < library->count; i++)
        put_row(&library->list[i], &out);
    mgl_json_out_close_array(&out);
    mgl_json_out_array(&out, "plans");
    for (size_t i = 0; i < library->plan_count; i++) {
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "name", library->plans[i].name);
        mgl_json_out_string(&out, "architecture", library->plans[i].architecture);
        put_names(&out, "steps", &library->plans[i].steps);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    mgl_cli_end_json(&out);
    return MGL_OK;
}

/* ---- show, check ----------------------------------------------------------------------------- */

static mgl_status find(const struct options *o, const mgl_library *library,
                       const mgl_transformation **t, const mgl_peak_plan **plan, mgl_error *err)
{
    *t = o->name.given ? mgl_library_find(library, o->name.value) : NULL;
    *plan = o->plan.given ? mgl_library_find_plan(library, o->plan.value) : NULL;
    if (o->name.given == o->plan.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--name or --plan is needed, and not both");
    if (*t || *plan)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, o->name.given ? o->name.value : o->plan.value,
                    "there is none of that name; `megalith kernel transform list` has them");
}

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
                       p->may_break ? "; may break" : "");
        mgl_cli_put_wrapped("  ", p->instruction);
    }
}

static mgl_status show(const struct options *o, const mgl_library *library, mgl_error *err)
{
    const mgl_transformation *t;
    const mgl_peak_plan *plan;
    mgl_json_out out = {0};
    mgl_status status = find(o, library, &t, &plan, err);
    if (status)
        return status;
    if (o->json.given) {
        mgl_json_out_begin(&out, "megalith.kernel/1");
        mgl_json_out_value(&out, t ? "transformation" : "plan", t ? t->json.root : plan->json.root);
        mgl_cli_end_json(&out);
    } else if (t) {
        print_transformation(t);
    } else {
        mgl_cli_printf("%s, for %s: %s\n", plan->name, plan->architecture, plan->summary);
        print_names("steps", &plan->steps);
    }
    return MGL_OK;
}

static mgl_status check_ops(const mgl_library *library, const mgl_peak_plan *plan, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < mgl_kernel_unit_count() && !status; i++) {
        const mgl_transformation *steps[MGL_MAX_NAMES];
        int count;
        status = mgl_peak_plan_steps(library, plan, mgl_op_get(mgl_kernel_unit_get(i)->op)->name,
                                     steps, &count, err);
    }
    return status;
}

/* A plan is looked at with the library as it is. */
static mgl_status check(const struct options *o, const mgl_library *library, mgl_error *err)
{
    mgl_transformation t = {0};
    mgl_peak_plan plan = {0};
    char *text = NULL;
    size_t length = 0;
    if (!o->file.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--file is needed: what is to be checked");
    mgl_status status = mgl_file_read(o->file.value, 1 << 20, &text, &length, err);
    if (!status && memmem(text, length, "megalith.plan/1", 15)) {
        status = mgl_peak_plan_parse(text, length, o->file.value, &plan, err);
        if (!status)
            status = check_ops(library, &plan, err);
        if (!status)
            mgl_cli_printf("plan %s: %d steps\n", plan.name, plan.steps.count);
    } else if (!status) {
        status = mgl_transformation_parse(text, length, o->file.value, &t, err);
        if (!status)
            mgl_cli_printf("%s: %d passes, %d calls\n", t.name, t.pass_count,
                           mgl_transformation_calls(&t));
    }
    mgl_transformation_clear(&t);
    mgl_peak_plan_clear(&plan);
    mgl_free(text);
    return status;
}

/* ---- apply ----------------------------------------------------------------------------------- */

typedef struct telling {
    bool json;
    mgl_json_out out;
    mgl_outcome last; /* of the last step that was done */
} telling;

static void on_step(void *user, const mgl_step_report *step)
{
    telling *t = user;
    const char *why = step->missing ? step->missing
                      : step->verdict && step->verdict->outcome
                          ? mgl_outcome_name(step->verdict->outcome)
                          : "";
    if (step->end == MGL_STEP_DONE && step->verdict)
        t->last = step->verdict->outcome;
    if (!t->json) {
        mgl_cli_printf("%-18s %-8s %2d calls, %d of %d configurations  %s\n",
                       step->transformation->name, mgl_step_end_name(step->end), step->calls,
                       step->carried, step->judged, why);
        return;
    }
    mgl_json_out_object(&t->out, NULL);
    mgl_json_out_string(&t->out, "transformation", step->transformation->name);
    mgl_json_out_string(&t->out, "end", mgl_step_end_name(step->end));
    mgl_json_out_int(&t->out, "calls", step->calls);
    mgl_json_out_int(&t->out, "judged", step->judged);
    mgl_json_out_int(&t->out, "carried", step->carried);
    mgl_json_out_string(&t->out, "why", why);
    mgl_json_out_string(&t->out, "checkpoint", step->checkpoint);
    mgl_json_out_close_object(&t->out);
}

/* Names with blanks between them; they point into the copy. */
static void split_names(char *text, mgl_names *out)
{
    char *rest = NULL;
    for (char *at = strtok_r(text, " ", &rest); at && out->count < MGL_MAX_NAMES;
         at = strtok_r(NULL, " ", &rest))
        out->names[out->count++] = at;
}

static mgl_status run(const struct options *o, const mgl_workshop *b, mgl_asker *asker,
                      const mgl_transformation *const *steps, int count, mgl_error *err)
{
    telling t = {.json = o->json.given, .last = MGL_OUTCOME_COUNT};
    mgl_waiter waiter = mgl_waiter_real(mgl_cancel_flag(mgl_cli_cancel()));
    mgl_text text = {0}, provides = {0};
    mgl_names names = {0};
    mgl_course_result result;
    mgl_status status = mgl_workbench_text(b->bench, &text, &provides, err);
    if (provides.bytes)
        split_names(provides.bytes, &names);
    const mgl_course_options options = {.work = mgl_workbench_work(b->bench),
                                        .text = text.bytes,
                                        .length = text.length,
                                        .steps = steps,
                                        .step_count = count,
                                        .provides = &names,
                                        .checkpoints = mgl_workbench_checkpoints(b->bench),
                                        .carry = (int)o->carry.value,
                                        .judgements = (int)o->judgements.value,
                                        .on_step = on_step,
                                        .user = &t};
    if (t.json) {
        mgl_json_out_begin(&t.out, "megalith.kernel/1");
        mgl_json_out_string(&t.out, "unit", b->unit->name);
        mgl_json_out_array(&t.out, "steps");
    }
    if (!status)
        status = mgl_course_run(&options, asker, &waiter, &result, err);
    if (!status && t.json) {
        mgl_json_out_close_array(&t.out);
        mgl_json_out_int(&t.out, "calls", result.calls);
        mgl_json_out_string(&t.out, "stopped",
                            result.stopped ? mgl_outcome_name(result.stopped) : NULL);
        mgl_cli_end_json(&t.out);
    } else if (!status) {
        mgl_cli_printf("%d done, %d failed, %d left out, %d calls%s%s\n", result.done,
                       result.failed, result.left_out, result.calls, result.stopped ? "; " : "",
                       result.stopped ? mgl_outcome_name(result.stopped) : "");
    }
    if (!status)
        mgl_cli_end_with(t.last < MGL_OUTCOME_COUNT ? mgl_outcome_exit(t.last) : MGL_EXIT_REFUSED);
    mgl_text_clear(&t.out.text);
    mgl_text_clear(&text);
    mgl_text_clear(&provides);
    return status;
}

static mgl_status apply_to(const struct options *o, const mgl_workshop *b, mgl_asker *asker,
                           mgl_error *err)
{
    const mgl_transformation *t, *steps[MGL_MAX_NAMES];
    const mgl_peak_plan *plan;
    const mgl_work *work = mgl_workbench_work(b->bench);
    int count = 1;
    mgl_status status = find(o, &b->library, &t, &plan, err);
    if (!status && mgl_workbench_state(b->bench).open)
        status = mgl_fail(err, MGL_USAGE, b->unit->name,
                          "a work is open: `megalith kernel prompt %s --drop` gives it up",
                          b->unit->name);
    if (!status && plan && strcmp(plan->architecture, work->arch) != 0)
        status = mgl_fail(err, MGL_USAGE, "--arch", "the plan is for %s", plan->architecture);
    if (!status && t && !mgl_transformation_suits(t, work->op, work->arch))
        status = mgl_fail(err, MGL_USAGE, t->name, "it is not for %s on %s", work->op, work->arch);
    steps[0] = t;
    if (!status && plan)
        status = mgl_peak_plan_steps(&b->library, plan, work->op, steps, &count, err);
    return status ? status : run(o, b, asker, steps, count, err);
}

static mgl_status apply(const struct options *o, mgl_error *err)
{
    mgl_workshop_options how = MGL_CLI_BENCH(o);
    const mgl_cli_ask ask = MGL_CLI_ASK(o);
    mgl_workshop b = {0};
    mgl_asker *asker = NULL;
    how.model = ask.model;
    if (!o->unit.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--unit is needed: the micro-kernel");
    mgl_status status = mgl_cli_asker_open(&ask, &asker, err);
    if (!status && !asker)
        status = mgl_fail(err, MGL_USAGE, "--proposer",
                          "scripted:FILE or chat is needed; `megalith kernel prompt --transform` "
                          "asks an external one, pass by pass");
    if (!status)
        status = mgl_workshop_open(o->unit.value, &how, &b, err);
    if (!status)
        status = apply_to(o, &b, asker, err);
    mgl_asker_close(asker);
    mgl_workshop_close(&b);
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
            mgl_status status = mgl_workshop_library(o->transformations.value, &library, err);
            if (!status)
                status = rows[i].run(o, &library, err);
            mgl_library_clear(&library);
            return status;
        }
    return mgl_fail(err, MGL_USAGE, operand, "is none of list, show, check and apply");
}

const mgl_cli_verb mgl_cli_kernel_transform_verb = {
    .name = "kernel transform",
    .operand = "WORD",
    .summary = "transformations: list, show and check them, or apply one or a plan",
    .example = "  megalith kernel transform show --name split_k\n"
               "  megalith kernel transform apply --plan sm_90a --unit merge --proposer "
               "scripted:a.json",
    MGL_CLI_VERB_OPTIONS,
    .run = transform,
};
