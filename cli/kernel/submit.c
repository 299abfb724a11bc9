/*
 * megalith kernel submit F: submits the answer to the prompt of `kernel prompt`, and prints the
 * verdict.
 */
#include "cli/kernel/loop.h"

#include "base/file.h"
#include "base/memory.h"

#define SUBMIT_OPTIONS(X)                                                                          \
    X(text, unit, "--unit", "UNIT", 0, 0, "the micro-kernel of the task")                          \
    X(flag, bare, "--bare", NULL, 0, 0, "the file contains only the text, without a fence")        \
    MGL_CLI_BENCH_OPTIONS(X)                                                                       \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(SUBMIT_OPTIONS)

enum { MAX_ANSWER = 4 << 20 };

static mgl_status submit(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_store_options how = MGL_CLI_BENCH(o);
    mgl_kernel_store b = {0};
    mgl_work_end end;
    char *answer = NULL;
    size_t length = 0;
    if (!o->unit.given)
        return mgl_fail(err, MGL_USAGE, NULL,
                        "--unit is missing; name the micro-kernel of the task");
    mgl_status status = mgl_file_read(operand, MAX_ANSWER, &answer, &length, err);
    if (!status)
        status = mgl_kernel_store_open(o->unit.value, &how, &b, err);
    if (!status)
        status = mgl_kernel_session_submit(b.bench, answer, length, o->bare.given, &end, err);
    if (!status)
        mgl_cli_tell_end(&b, &end, o->json.given);
    mgl_free(answer);
    mgl_kernel_store_close(&b);
    return status;
}

static const char notes[] =
    "F may be -, which is standard input. A task accepts 15 answers; a region of a pass of a "
    "transformation accepts one and its retries. The last answer ends the task, with or without a "
    "new version. An empty answer is rejected and not counted.";
_Static_assert(MGL_FEEDBACK_CALLS == 15, "see the notes for the number");

const mgl_cli_verb mgl_cli_kernel_submit_verb = {
    .name = "kernel submit",
    .operand = "F",
    .operand_is_file = true,
    .summary = "submits an answer to the prompt of a task and prints the verdict",
    .example = "  megalith kernel submit answer.md --unit merge --json",
    .notes = notes,
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = submit,
};
