/*
 * megalith check F.mls: validates a schedule. With --model, also checks that it computes the model.
 */
#include "cli/cli.h"
#include "cli/schedule/sarif.h"
#include "cli/signals.h"

#include "autotune/answers/answer.h"
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "schedule/schedule.h"
#include "validator/validator.h"
#include "vm/pipeline/machine_check.h"

#include <string.h>

#define CHECK_OPTIONS(X)                                                                           \
    X(text, model, "--model", "MODEL", 0, 0, "also check that the schedule computes this model")   \
    MGL_CLI_STRICT_OPTION(X)                                                                       \
    X(flag, sarif, "--sarif", NULL, 0, 0, "print one SARIF 2.1.0 log, for editors")                \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(CHECK_OPTIONS)

enum { SHOWN_COLUMNS = 160 };

/* The checked file. */
typedef struct source {
    const char *path;
    char *text;
    size_t length;
} source;

/* The line with this number, shortened for a terminal; length 0: no such line. */
static const char *find_line(const source *from, int number, int *length)
{
    const char *at = from->text, *end = from->text + from->length;
    for (int i = 1; i < number && at; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    *length = 0;
    if (!at || number < 1 || at >= end)
        return "";
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t bytes = (size_t)((stop ? stop : end) - at);
    *length = bytes > SHOWN_COLUMNS ? SHOWN_COLUMNS : (int)bytes;
    return at;
}

static void print_diagnostic(const source *from, const mgl_diagnostic *diagnostic)
{
    int length;
    const char *line = find_line(from, diagnostic->line, &length);
    mgl_cli_printf("%s:", from->path);
    if (diagnostic->line > 0)
        mgl_cli_printf("%d:", diagnostic->line);
    mgl_cli_printf(" %sMG%03d: %s\n", diagnostic->warning ? "warning: " : "", diagnostic->code,
                   diagnostic->message);
    if (length)
        mgl_cli_printf("%6d | %.*s%s\n", diagnostic->line, length, line,
                       length == SHOWN_COLUMNS ? "..." : "");
    for (int i = 0; i < diagnostic->witness_count; i++)
        mgl_cli_printf("       %s\n", diagnostic->witness[i]);
}

static void print_verdict(const source *from, const mgl_verdict *verdict)
{
    for (int i = 0; i < verdict->count; i++)
        print_diagnostic(from, &verdict->diagnostics[i]);
    if (verdict->accepted)
        mgl_cli_printf("accepted: %d tasks, %d counters, %.1f ms; ", verdict->tasks,
                       verdict->counters, verdict->ms);
    else
        mgl_cli_printf(
            "rejected: %d %s%s; ", verdict->count, verdict->count == 1 ? "problem" : "problems",
            verdict->count >= MGL_MAX_DIAGNOSTICS ? " (the check stops at this number)" : "");
    mgl_cli_printf("meaning: %s\n", verdict->meaning_checked ? "checked" : "not checked");
    if (verdict->formats.weights) {
        mgl_cli_put("formats: ");
        mgl_cli_put_formats(&verdict->formats);
    }
    if (verdict->count)
        mgl_cli_printf("'megalith explain MG%03d' explains the diagnostic and how to fix it\n",
                       verdict->diagnostics[0].code);
}

static void print_json(const mgl_verdict *verdict)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.check/1");
    mgl_answer_verdict(&out, verdict);
    mgl_cli_end_json(&out);
}

/* Prints the verdict in the requested format. A rejection has no further error message. */
static mgl_status print(const source *from, const struct options *o, const mgl_verdict *verdict,
                        mgl_error *err)
{
    if (o->sarif.given)
        mgl_cli_print_sarif(from->path, from->text, from->length, verdict, NULL);
    else if (o->json.given)
        print_json(verdict);
    else
        print_verdict(from, verdict);
    return verdict->accepted ? MGL_OK : mgl_fail(err, MGL_REJECTED, NULL, "%s", "");
}

static mgl_status parse(source *from, mgl_program **out, mgl_error *err)
{
    mgl_status status =
        mgl_file_read(from->path, MGL_SCHEDULE_MAX_TEXT, &from->text, &from->length, err);
    if (!status)
        status = mgl_schedule_parse(from->text, from->length, from->path, out, err);
    return status;
}

/* Prints a SARIF log with the reason why there is no verdict, because editors read only the
 * log. */
static mgl_status fail_check(const source *from, const struct options *o, mgl_status status,
                             const mgl_error *err)
{
    static const mgl_verdict none;
    if (o->sarif.given && status != MGL_INTERRUPTED)
        mgl_cli_print_sarif(from->path, from->text, from->length, &none, err);
    return status;
}

static mgl_status prove(const mgl_program *program, const mgl_checkpoint *checkpoint,
                        const struct options *o, mgl_verdict *out, mgl_error *err)
{
    const mgl_graph *graph = checkpoint ? checkpoint->graph : NULL;
    return o->strict_formats.given ? mgl_validator_check_strict(program, graph, out, err)
                                   : mgl_validator_check(program, graph, out, err);
}

static mgl_status check(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    source from = {.path = operand};
    mgl_program *program = NULL;
    mgl_checkpoint *checkpoint = NULL;
    mgl_verdict verdict = {0};
    if (o->sarif.given && o->json.given)
        return mgl_fail(err, MGL_USAGE, "--sarif",
                        "cannot be combined with --json; leave out one of the two");
    if (o->strict_formats.given && !o->model.given)
        return mgl_fail(err, MGL_USAGE, "--strict-formats",
                        "needs a checkpoint to compare with; add --model MODEL");
    mgl_status status = parse(&from, &program, err);
    if (!status && o->model.given)
        status = mgl_import(o->model.value, &checkpoint, err);
    if (!status)
        status = mgl_cli_check_cancel(err);
    if (!status)
        status = prove(program, checkpoint, o, &verdict, err);
    if (!status)
        status = mgl_machine_warn(program, &verdict, err);
    if (!status)
        status = mgl_cli_check_cancel(err);
    status = status ? fail_check(&from, o, status, err) : print(&from, o, &verdict, err);
    mgl_verdict_clear(&verdict);
    mgl_checkpoint_close(checkpoint);
    mgl_program_free(program);
    mgl_free(from.text);
    return status;
}

const mgl_cli_verb mgl_cli_check_verb = {
    .name = "check",
    .operand = "F.mls",
    .operand_is_file = true,
    .summary = "proves a schedule safe, or prints why it is not; warns about limits of its target",
    .example = "  megalith lower tests/models/tales-5m --target sm_90a:132 -o tales.mls\n"
               "  megalith check tales.mls --model tests/models/tales-5m",
    MGL_CLI_VERB_OPTIONS,
    .run = check,
};
