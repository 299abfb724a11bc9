/*
 * megalith kernel prompt UNIT: begins to change a micro-kernel by a transformation or a task, or
 * continues the change that is open in the kernel session. Prints the prompt, or passes the prompt
 * to the model client of --proposer and prints the outcome. --drop gives up the open change.
 */
#include "api/cancel.h"
#include "cli/kernel/loop.h"
#include "cli/signals.h"

#define PROMPT_OPTIONS(X)                                                                          \
    X(text, transform, "--transform", "NAME", 0, 0, "begin this transformation")                   \
    X(text, task, "--task", "TEXT", 0, 0, "begin a task with this description")                    \
    X(text, region, "--region", "launch|macros|device", 0, 0,                                      \
      "region that the task edits (device)")                                                       \
    MGL_CLI_PROFILE_OPTIONS(X)                                                                     \
    X(flag, drop, "--drop", NULL, 0, 0, "drop the open task first")                                \
    X(flag, body, "--body", NULL, 0, 0, "print the body of a request instead of a text")           \
    MGL_CLI_ASK_OPTIONS(X)                                                                         \
    MGL_CLI_BENCH_OPTIONS(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(PROMPT_OPTIONS)

/* Appends the profile's hint to the words of a task. */
static mgl_status put_hint(const struct options *o, const mgl_kernel_unit *unit, mgl_text *out,
                           mgl_error *err)
{
    const mgl_cli_profile files = MGL_CLI_PROFILE(o);
    mgl_profile profile;
    if (!files.ncu && !files.trace)
        return MGL_OK;
    if (!o->task.given)
        return mgl_fail(err, MGL_USAGE, files.ncu ? "--ncu" : "--trace", "needs --task");
    mgl_status status = mgl_cli_profile_read(&files, unit, &profile, err);
    if (!status) {
        mgl_text_put(out, "\n\nWhat is in its way: ");
        mgl_profile_hint(&profile, out);
    }
    return status;
}

static mgl_status begin(const struct options *o, mgl_kernel_store *b, mgl_error *err)
{
    mgl_text task = {0};
    mgl_text_put(&task, o->task.given ? o->task.value : "");
    mgl_status status = put_hint(o, b->unit, &task, err);
    const mgl_kernel_store_begin_options options = {.transformation = o->transform.value,
                                                    .task = o->task.given ? task.bytes : NULL,
                                                    .region = o->region.value,
                                                    .drop = o->drop.given};
    if (!status && task.failed)
        status = mgl_fail_memory(err, task.length);
    if (!status)
        status = mgl_kernel_store_begin(b, &options, err);
    mgl_text_clear(&task);
    return status;
}

static mgl_status print_json(const struct options *o, const mgl_kernel_store *b, mgl_error *err)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_status status = mgl_kernel_store_put_prompt(b, o->body.given, &out, err);
    return mgl_cli_finish_json(&out, status);
}

/* With only --drop, no change is open afterwards. */
static bool is_dropped(const struct options *o, const mgl_kernel_store *b)
{
    return o->drop.given && !mgl_kernel_session_state(b->bench).open;
}

static void tell_dropped(const struct options *o, const mgl_kernel_store *b)
{
    mgl_json_out out = {0};
    if (!o->json.given) {
        mgl_cli_printf("%s: no task is open\n", b->unit->name);
        return;
    }
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_kernel_store_put_state(b, &out);
    mgl_cli_end_json(&out);
}

static mgl_status print(const struct options *o, const mgl_kernel_store *b, mgl_error *err)
{
    mgl_text text = {0};
    if (o->json.given)
        return print_json(o, b, err);
    mgl_status status = mgl_kernel_session_prompt(b->bench, o->body.given, &text, err);
    if (!status)
        mgl_cli_print(text.bytes, text.length);
    if (!status && o->body.given)
        mgl_cli_put("\n");
    mgl_text_clear(&text);
    return status;
}

static mgl_status answer(const struct options *o, const mgl_kernel_store *b,
                         mgl_model_client *model_client, mgl_error *err)
{
    mgl_waiter waiter = mgl_waiter_real(mgl_cancel_flag(mgl_cli_cancel()));
    mgl_work_end end;
    mgl_status status = mgl_kernel_session_run(b->bench, model_client, &waiter, &end, err);
    if (!status)
        mgl_cli_tell_end(b, &end, o->json.given);
    return status;
}

static mgl_status prompt(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_kernel_store_options how = MGL_CLI_BENCH(o);
    const mgl_cli_ask ask = MGL_CLI_ASK(o);
    mgl_kernel_store b = {0};
    mgl_model_client *model_client = NULL;
    how.model = ask.model;
    mgl_status status = mgl_cli_model_client_open(&ask, &model_client, err);
    how.reads = !model_client && !o->transform.given && !o->task.given && !o->drop.given;
    if (!status)
        status = mgl_kernel_store_open(operand, &how, &b, err);
    if (!status)
        status = begin(o, &b, err);
    if (!status && is_dropped(o, &b))
        tell_dropped(o, &b);
    else if (!status)
        status = model_client ? answer(o, &b, model_client, err) : print(o, &b, err);
    mgl_model_client_close(model_client);
    mgl_kernel_store_close(&b);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_prompt_verb = {
    .name = "kernel prompt",
    .operand = "UNIT",
    .summary = "begins a task on a micro-kernel, and prints the prompt or asks a proposer",
    .example =
        "  megalith kernel prompt merge --transform refactor\n"
        "  megalith kernel prompt merge --task 'Use 16-byte loads.' --proposer scripted:a.json",
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = prompt,
};
