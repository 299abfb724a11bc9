/* megalith kernel verify UNIT: passes a text of a micro-kernel through the gates before a device.
 */
#include "cli/kernel.h"
#include "cli/signals.h"
#include "pipeline.h"

#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERIFY_OPTIONS(X)                                                                          \
    X(file, text, "--text", "FILE", 0, 0, "the whole text of the unit")                            \
    X(file, before, "--before", "FILE", 0, 0, "what it was made of (the unit's own text)")         \
    X(text, region, "--region", "launch|macros|device", 0, 0,                                      \
      "the only region that may differ (each may)")                                                \
    X(list, tune, "--tune", "NAME=N", 0, 0, "a tunable of the launch region (its first value)")    \
    X(text, arch, "--arch", "A", 0, 0, "sm_80, sm_90a, sm_100a, ... (sm_90a)")                     \
    X(flag, scan_only, "--scan-only", NULL, 0, 0, "ends before the compiler")                      \
    MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(VERIFY_OPTIONS)

/* A request as it was read. */
typedef struct request {
    mgl_kernel_candidate candidate;
    mgl_kernel_value values[MGL_KERNEL_VALUES];
    char names[MGL_KERNEL_VALUES][40];
    char *text, *before; /* owned */
} request;

static mgl_status read_values(const struct options *o, request *r, mgl_error *err)
{
    for (size_t i = 0; i < o->tune.count; i++) {
        const char *given = o->tune.values[i], *equals = strchr(given, '=');
        char *end = NULL;
        const long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || end == equals + 1 || *end || equals - given >= 40)
            return mgl_fail(err, MGL_USAGE, "--tune", "'%.60s' is not NAME=N", given);
        snprintf(r->names[i], sizeof r->names[i], "%.*s", (int)(equals - given), given);
        r->values[i] = (mgl_kernel_value){r->names[i], value};
    }
    r->candidate.values = r->values;
    r->candidate.value_count = (int)o->tune.count;
    return MGL_OK;
}

/* What is larger than a text may be is read whole, so that its size is a verdict. */
static mgl_status read_texts(const struct options *o, request *r, mgl_error *err)
{
    mgl_kernel_candidate *c = &r->candidate;
    mgl_status status = mgl_file_read(o->text.value, MGL_CLI_MAX_TEXT, &r->text, &c->length, err);
    c->text = r->text;
    if (!status && o->before.given)
        status =
            mgl_file_read(o->before.value, MGL_CLI_MAX_TEXT, &r->before, &c->before_length, err);
    c->before = r->before;
    return status;
}

static mgl_status read_request(const char *operand, const struct options *o, request *r,
                               mgl_error *err)
{
    if (!o->text.given)
        return mgl_fail(err, MGL_USAGE, NULL, "--text is needed: a file with the unit's text");
    mgl_status status = mgl_cli_kernel_find(operand, &r->candidate.unit, err);
    if (!status)
        status = mgl_cli_kernel_region(o->region.value, &r->candidate.region, err);
    if (!status)
        status = read_values(o, r, err);
    return status ? status : read_texts(o, r, err);
}

/* ---- the answer -------------------------------------------------------------------------------
 */

static void put_resources(mgl_json_out *out, const mgl_kernel_resources *r)
{
    mgl_json_out_object(out, "resources");
    mgl_json_out_int(out, "registers", r->registers);
    mgl_json_out_int(out, "spill_stores", r->spill_stores);
    mgl_json_out_int(out, "spill_loads", r->spill_loads);
    mgl_json_out_int(out, "frame", r->frame);
    mgl_json_out_int(out, "shared", r->shared);
    mgl_json_out_int(out, "global", r->global);
    mgl_json_out_int(out, "constant", r->constant);
    mgl_json_out_close_object(out);
}

static void tell_json(const mgl_kernel_unit *unit, const mgl_kernel_result *result)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.kernel/1");
    mgl_json_out_string(&out, "unit", unit->name);
    mgl_json_out_string(&out, "outcome", mgl_outcome_name(result->outcome));
    mgl_json_out_string(&out, "diagnostic", result->diagnostic[0] ? result->diagnostic : NULL);
    mgl_json_out_string(&out, "hint", mgl_outcome_hint(result->outcome));
    mgl_json_out_int(&out, "line", result->line);
    mgl_json_out_string(&out, "hash", result->hash[0] ? result->hash : NULL);
    mgl_json_out_bool(&out, "compiled", result->compiled);
    mgl_json_out_string(&out, "not_compiled",
                        result->not_compiled[0] ? result->not_compiled : NULL);
    if (result->compiled) {
        mgl_json_out_real(&out, "compile_s", result->compile_s);
        put_resources(&out, &result->resources);
    }
    mgl_cli_end_json(&out);
}

static void tell_lines(const mgl_kernel_result *result)
{
    const mgl_kernel_resources *r = &result->resources;
    if (result->diagnostic[0])
        mgl_cli_printf("%s\n", result->diagnostic);
    else
        mgl_cli_printf("%s\n", mgl_outcome_name(result->outcome));
    mgl_cli_printf("%s\n", mgl_outcome_hint(result->outcome));
    if (result->not_compiled[0])
        mgl_cli_printf("not compiled: %s\n", result->not_compiled);
    if (result->compiled)
        mgl_cli_printf(
            "compiled in %.1f s: %lld registers, %lld + %lld bytes spilled, %lld shared, "
            "%lld global\n",
            result->compile_s, (long long)r->registers, (long long)r->spill_stores,
            (long long)r->spill_loads, (long long)r->shared, (long long)(r->global + r->constant));
}

static mgl_status verify(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    request r = {0};
    mgl_kernel_result result;
    const mgl_kernel_options how = {.arch = o->arch.value,
                                    .no_compile = o->scan_only.given,
                                    .abort = mgl_cancel_flag(mgl_cli_cancel())};
    mgl_status status = read_request(operand, o, &r, err);
    if (!status)
        status = mgl_kernel_verify(&r.candidate, &how, &result, err);
    if (!status) {
        mgl_cli_end_with(mgl_outcome_exit(result.outcome));
        if (o->json.given)
            tell_json(r.candidate.unit, &result);
        else
            tell_lines(&result);
        mgl_kernel_result_clear(&result);
    }
    mgl_free(r.text);
    mgl_free(r.before);
    return status;
}

const mgl_cli_verb mgl_cli_kernel_verify_verb = {
    .name = "kernel verify",
    .operand = "UNIT",
    .summary = "passes a text of a micro-kernel through the gates before a device",
    .example = "  megalith kernel show merge --text > merge.cuh\n"
               "  megalith kernel verify merge --text merge.cuh --region device --json",
    MGL_CLI_VERB_OPTIONS,
    .run = verify,
};
