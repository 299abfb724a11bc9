/*
 * megalith kernel guard scan FILE: passes a text of a micro-kernel through the gates before the
 * compiler, and prints everything that they reject. FILE holds the text, or an answer to a prompt
 * that contains the text.
 */
#include "cli/kernel/kernel.h"

#include "autotune/kernels/gates/guard.h"
#include "base/file.h"
#include "base/memory.h"

#define SCAN_OPTIONS(X)                                                                            \
    X(text, unit, "--unit", "UNIT", 0, 0, "the unit of the text (the unit whose frame matches)")   \
    X(text, region, "--region", "launch|macros|device", 0, 0,                                      \
      "region of the unit; the file contains only the region's body")                              \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(SCAN_OPTIONS)

static mgl_status find_unit(const char *text, size_t length, const mgl_kernel_unit **out,
                            mgl_error *err)
{
    *out = mgl_guard_find_unit(text, length);
    if (*out)
        return MGL_OK;
    return mgl_fail(err, MGL_USAGE, "--unit",
                    "is missing, and the text has the frame of no micro-kernel; name the unit");
}

static void print_findings(const mgl_kernel_unit *unit, const mgl_guard_findings *found)
{
    for (int i = 0; i < found->count; i++) {
        const mgl_trial_verdict *f = &found->list[i];
        if (f->line > 0)
            mgl_cli_printf("%s at %s:%d: %s\n", mgl_outcome_name(f->outcome), unit->file, f->line,
                           f->diagnostic);
        else
            mgl_cli_printf("%s: %s\n", mgl_outcome_name(f->outcome), f->diagnostic);
        mgl_cli_printf("    %s\n", mgl_outcome_kernel_hint(f->outcome));
    }
    if (found->count == 0)
        mgl_cli_printf("%s: nothing is rejected\n", unit->name);
    else if (!found->whole)
        mgl_cli_put("The scan stopped before the end of the text; fix these first.\n");
}

static void tell_findings(const mgl_kernel_unit *unit, const mgl_guard_findings *found, bool json)
{
    mgl_json_out out = {0};
    if (found->count > 0)
        mgl_cli_end_with(mgl_outcome_exit(found->list[0].outcome));
    if (!json) {
        print_findings(unit, found);
        return;
    }
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_string(&out, "unit", unit->name);
    mgl_json_out_string(&out, "file", unit->file);
    mgl_guard_put_findings(&out, found);
    mgl_cli_end_json(&out);
}

/* Extracts the text from the file, and finds the unit that it replaces. */
static mgl_status take_text(const struct options *o, const char *answer, size_t length,
                            mgl_text *text, const mgl_kernel_unit **unit, mgl_error *err)
{
    mgl_kernel_region region = MGL_KERNEL_REGION_ANY;
    if (o->region.given && !o->unit.given)
        return mgl_fail(err, MGL_USAGE, "--region",
                        "needs --unit, which names the unit of the region");
    mgl_status status = o->unit.given ? mgl_kernel_find(o->unit.value, unit, err) : MGL_OK;
    if (!status)
        status = mgl_kernel_find_region(o->region.value, &region, err);
    if (!status)
        status = mgl_guard_take_text(*unit, region, answer, length, text, err);
    if (!status && !*unit)
        status = find_unit(text->bytes ? text->bytes : "", text->length, unit, err);
    return status;
}

static mgl_status scan(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    const mgl_kernel_unit *unit = NULL;
    mgl_text text = {0};
    char *answer = NULL;
    size_t length = 0;
    mgl_guard_findings *found = mgl_alloc_zero(1, sizeof *found);
    mgl_status status = found ? mgl_file_read(operand, MGL_CLI_MAX_TEXT, &answer, &length, err)
                              : mgl_fail_memory(err, sizeof *found);
    if (!status)
        status = take_text(o, answer, length, &text, &unit, err);
    if (!status)
        status = mgl_guard_scan(unit, text.bytes ? text.bytes : "", text.length, found, err);
    if (!status)
        tell_findings(unit, found, o->json.given);
    mgl_text_clear(&text);
    mgl_free(answer);
    mgl_free(found);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_guard_scan_verb = {
    .name = "kernel guard scan",
    .operand = "FILE",
    .operand_is_file = true,
    .summary = "prints everything that the gates before the compiler reject in a text; exits with "
               "11, or 0 if nothing is rejected",
    .example = "  megalith kernel guard scan merge.cuh --json\n"
               "  megalith kernel guard scan answer.md --unit merge --region device",
    .notes = "FILE is a text, or an answer to a prompt with a ```cuda fence.",
    .gives_verdict = true,
    MGL_CLI_VERB_OPTIONS,
    .run = scan,
};
