/* Implements mgl_kernel_verify (kernel.h): the gates without a device, in order. A gate that
 * rejects a candidate fills the result. */
#include "autotune/kernels/gates/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/plan.h"
#include "autotune/kernels/gates/compile.h"
#include "autotune/kernels/gates/context.h"
#include "autotune/kernels/gates/launch.h"
#include "autotune/kernels/gates/original.h"
#include "autotune/kernels/gates/scan.h"
#include "autotune/kernels/ptx/scan.h"
#include "base/format.h"
#include "base/memory.h"

/* State of one candidate. */
typedef struct passage {
    const mgl_kernel_candidate *c;
    const mgl_kernel_options *options;
    const char *arch, *before; /* (before_length) */
    size_t before_length;
    mgl_kernel_launch launch;
    int64_t chosen[MGL_KERNEL_VALUES];
    mgl_kernel_context context;
    mgl_kernel_compiled own; /* the unit's original text, compiled in the same program */
    mgl_kernel_result *out;
} passage;

void mgl_kernel_result_clear(mgl_kernel_result *result)
{
    mgl_free(result->ptx);
    mgl_free(result->own_ptx);
    *result = (mgl_kernel_result){0};
}

/* ---- rejections ------------------------------------------------------------------------------ */

static bool is_refused(const passage *p)
{
    return p->out->verdict.outcome != MGL_OUTCOME_UNMEASURED;
}

/* Formats "<CODE> at <file>:<line>: <what>"; the position is omitted if it is unknown. */
static mgl_status refuse(passage *p, mgl_outcome outcome, int line, const char *what)
{
    char place[160] = "";
    if (line > 0)
        snprintf(place, sizeof place, " at %s:%d", p->c->unit->file, line);
    p->out->verdict.line = line;
    mgl_trial_verdict_set(&p->out->verdict, outcome, "%s%s: %s", mgl_outcome_name(outcome), place,
                          what);
    return MGL_OK;
}

static int line_of(const mgl_error *why)
{
    return !strncmp(why->where, "line ", 5) ? (int)strtol(why->where + 5, NULL, 10) : 0;
}

/* An error of a part rejects the candidate, except for lack of memory and interruption. */
static mgl_status take_failure(passage *p, mgl_status status, mgl_outcome outcome,
                               const mgl_error *why, mgl_error *err)
{
    if (status == MGL_NO_MEMORY || status == MGL_INTERRUPTED) {
        if (err)
            *err = *why;
        return status;
    }
    return status ? refuse(p, outcome, line_of(why), why->message) : MGL_OK;
}

/* ---- the text -------------------------------------------------------------------------------- */

static mgl_status pass_regions(passage *p, mgl_error *err)
{
    mgl_error why = {0};
    const mgl_kernel_candidate *c = p->c;
    if (c->length > MGL_KERNEL_TEXT)
        return refuse(p, MGL_OUTCOME_PARSE, 0, "the text has more than 262,144 bytes");
    if (memchr(c->text, 0, c->length))
        return refuse(p, MGL_OUTCOME_STATIC_FORBIDDEN, 0, "a byte 0 is not allowed in the text");
    mgl_status status = mgl_kernel_regions_compare(p->before, p->before_length, c->text, c->length,
                                                   c->region, &why);
    return take_failure(p, status, MGL_OUTCOME_REGION_VIOLATION, &why, err);
}

/* A text with tunable values is never a duplicate. */
static mgl_status pass_duplicate(passage *p, mgl_error *err)
{
    char own[MGL_SHA256_HEX];
    mgl_status status = mgl_kernel_hash(p->c->text, p->c->length, p->out->hash, err);
    if (!status)
        status = mgl_kernel_hash(p->before, p->before_length, own, err);
    if (status || p->c->value_count > 0 || strcmp(own, p->out->hash) != 0)
        return status;
    return refuse(p, MGL_OUTCOME_DUPLICATE, 0, "it equals the text from which it was made");
}

static mgl_status pass_launch(passage *p, mgl_error *err)
{
    mgl_error why = {0};
    mgl_status status = mgl_kernel_launch_read(p->c->text, p->c->length, &p->launch, &why);
    status = take_failure(p, status, MGL_OUTCOME_PARSE, &why, err);
    if (status || is_refused(p))
        return status;
    status = mgl_kernel_launch_choose(&p->launch, p->c->values, p->c->value_count, p->chosen, &why);
    return take_failure(p, status, MGL_OUTCOME_INVALID_CONFIG, &why, err);
}

static mgl_status pass_scan(passage *p, mgl_error *err)
{
    mgl_scan_fault fault;
    int64_t shared = 0;
    mgl_kernel_launch_needs(&p->launch, MGL_KERNEL_NEED_SHARED, p->chosen, NULL, &shared);
    mgl_status status = mgl_kernel_scan(p->c->unit, p->c->text, p->c->length, shared, &fault, err);
    if (status || fault.line == 0)
        return status;
    return refuse(p, MGL_OUTCOME_STATIC_FORBIDDEN, fault.line, fault.what);
}

/* ---- needs ----------------------------------------------------------------------------------- */

static mgl_status refuse_need(passage *p, mgl_kernel_need need, int64_t value, int64_t most)
{
    char what[200];
    snprintf(what, sizeof what, "need %s: %lld %s, and there are %lld", mgl_kernel_need_name(need),
             (long long)value, mgl_kernel_need_what(need), (long long)most);
    return refuse(p,
                  need == MGL_KERNEL_NEED_REGISTERS ? MGL_OUTCOME_RESOURCE_REGISTERS
                                                    : MGL_OUTCOME_RESOURCE_SHARED,
                  p->launch.lines[need], what);
}

/* Declared needs must fit the program and the op's budget. */
static mgl_status check_needs(passage *p, const mgl_dimensions *d)
{
    const int64_t most[MGL_KERNEL_NEED_COUNT] = {
        [MGL_KERNEL_NEED_REGISTERS] = p->context.budget.registers,
        [MGL_KERNEL_NEED_SHARED] = p->context.budget.shared,
        [MGL_KERNEL_NEED_STAGE] = d->of[MGL_DIMENSION_STAGE],
        [MGL_KERNEL_NEED_PARTIALS] = d->of[MGL_DIMENSION_PARTIAL_WORDS],
        [MGL_KERNEL_NEED_RING] = d->of[MGL_DIMENSION_RING_BLOCKS],
        [MGL_KERNEL_NEED_WARPS] = d->of[MGL_DIMENSION_WARPS]};
    for (int i = 0; i < MGL_KERNEL_NEED_COUNT && !is_refused(p); i++) {
        int64_t value = 0;
        if (p->launch.needs[i].count == 0)
            continue;
        if (!mgl_kernel_launch_needs(&p->launch, (mgl_kernel_need)i, p->chosen, d, &value))
            return refuse(p, MGL_OUTCOME_INVALID_CONFIG, p->launch.lines[i],
                          "the need has no value for these tunables");
        if (value > most[i])
            return refuse_need(p, (mgl_kernel_need)i, value, most[i]);
    }
    return MGL_OK;
}

/* Compares the counts of ptxas with the declared needs and the op's budget. */
static mgl_status check_resources(passage *p, const mgl_dimensions *d)
{
    const mgl_kernel_resources *r = &p->out->resources;
    const mgl_context_budget *b = &p->context.budget;
    int64_t registers = b->registers, shared = b->shared, declared;
    char what[200];
    if (mgl_kernel_launch_needs(&p->launch, MGL_KERNEL_NEED_REGISTERS, p->chosen, d, &declared))
        registers = declared < registers ? declared : registers;
    if (mgl_kernel_launch_needs(&p->launch, MGL_KERNEL_NEED_SHARED, p->chosen, d, &declared))
        shared = declared < shared ? declared : shared;
    const struct {
        mgl_outcome outcome;
        int64_t is, most;
        const char *of;
    } rows[] = {
        {MGL_OUTCOME_RESOURCE_SPILL, r->spill_stores + r->spill_loads, b->spill,
         "bytes are spilled from registers"},
        {MGL_OUTCOME_RESOURCE_GLOBAL, r->global + r->constant, b->global,
         "bytes of variables and tables at file scope"},
        {MGL_OUTCOME_RESOURCE_SHARED, r->shared, shared, "bytes of shared memory of its own"},
        {MGL_OUTCOME_RESOURCE_REGISTERS, r->registers, registers, "registers of a thread"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is > rows[i].most) {
            snprintf(what, sizeof what, "%lld %s, of at most %lld", (long long)rows[i].is,
                     rows[i].of, (long long)rows[i].most);
            return refuse(p, rows[i].outcome, 0, what);
        }
    return MGL_OK;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static mgl_status lower(const passage *p, mgl_plan **out, mgl_error *err)
{
    const mgl_context_harness *h = mgl_kernel_context_harness(&p->context, p->c->unit);
    char target[32];
    snprintf(target, sizeof target, "%s:132", p->arch);
    const mgl_plan_options options = {.size = sizeof options,
                                      .shape = h->shape,
                                      .target = target,
                                      .dtype = h->dtype,
                                      .config_text = h->config[0] ? h->config : NULL,
                                      .capacity = h->capacity,
                                      .sequences = h->sequences};
    return mgl_plan_lower(&options, out, err);
}

static void make_job(const passage *p, const char *schedule, size_t length, mgl_kernel_job *job)
{
    *job = (mgl_kernel_job){.arch = p->arch,
                            .file = p->c->unit->file,
                            .text = p->c->text,
                            .text_length = p->c->length,
                            .schedule = schedule,
                            .schedule_length = length,
                            .value_count = p->launch.tunable_count};
    for (int i = 0; i < job->value_count; i++)
        job->values[i] = (mgl_kernel_value){p->launch.tunables[i].name, p->chosen[i]};
}

static mgl_status take_compiled(passage *p, mgl_kernel_compiled *made)
{
    p->out->compile_s = made->compile_s;
    if (!made->done)
        return refuse(p, made->verdict.outcome, made->verdict.line, made->verdict.diagnostic);
    p->out->compiled = true;
    p->out->resources = made->resources;
    p->out->ptx = made->ptx;
    p->out->ptx_length = made->ptx_length;
    made->ptx = NULL;
    return MGL_OK;
}

/* Parses both modules. A candidate whose PTX cannot be parsed is rejected. */
static mgl_status read_ptx(passage *p, mgl_ptx *candidate, mgl_ptx *incumbent, mgl_error *err)
{
    mgl_error why = {0};
    mgl_status status = mgl_ptx_parse(p->own.ptx, p->own.ptx_length, "own.ptx", incumbent, err);
    if (status)
        return status;
    status = mgl_ptx_parse(p->out->ptx, p->out->ptx_length, "candidate.ptx", candidate, &why);
    return take_failure(p, status, MGL_OUTCOME_STATIC_FORBIDDEN, &why, err);
}

/* Compares the candidate's PTX with the PTX of the unit's original text: see ptx/scan.h. */
static mgl_status scan_ptx(passage *p, mgl_error *err)
{
    mgl_ptx candidate = {0}, incumbent = {0};
    mgl_ptx_finding found;
    char what[sizeof found.what + sizeof found.why + 32];
    mgl_status status = read_ptx(p, &candidate, &incumbent, err);
    if (!status && !is_refused(p))
        status = mgl_ptx_scan(&candidate, &incumbent, true, &found, err);
    if (!status && !is_refused(p) && found.outcome != MGL_OUTCOME_OK) {
        snprintf(what, sizeof what, "compiled, it has `%s`: %s", found.what, found.why);
        refuse(p, found.outcome, 0, what);
    }
    mgl_ptx_clear(&candidate);
    mgl_ptx_clear(&incumbent);
    return status;
}

/* Raises the budget to the resources that the unit's original text uses. The budget was measured
 * with one compiler. With another compiler, the original text may already spill or use tables. */
static void raise_budget(passage *p)
{
    mgl_context_budget *b = &p->context.budget;
    const mgl_kernel_resources *r = &p->own.resources;
    if (r->spill_stores + r->spill_loads > b->spill)
        b->spill = r->spill_stores + r->spill_loads;
    if (r->global + r->constant > b->global)
        b->global = r->global + r->constant;
}

static mgl_status compile_program(passage *p, const mgl_program *program, const char *schedule,
                                  size_t length, mgl_error *err)
{
    mgl_kernel_job job;
    mgl_kernel_compiled made;
    make_job(p, schedule, length, &job);
    mgl_status status = mgl_kernel_compile(&job, p->options, &made, err);
    if (status)
        return status;
    status = take_compiled(p, &made);
    mgl_kernel_compiled_clear(&made);
    if (!status && !is_refused(p))
        status = mgl_kernel_compile_original(p->c->unit, program, &job, p->options, &p->own, err);
    return status;
}

static mgl_status compile(passage *p, const mgl_plan *plan, const mgl_dimensions *d, mgl_error *err)
{
    char *schedule = NULL;
    size_t length;
    mgl_status status = mgl_plan_text(plan, &schedule, &length, err);
    if (!status)
        status = compile_program(p, plan->program, schedule, length, err);
    mgl_text_free(schedule);
    if (!status && !is_refused(p))
        status = scan_ptx(p, err);
    if (!status && !is_refused(p)) {
        raise_budget(p);
        status = check_resources(p, d);
    }
    return status;
}

/* Without a compiler, a candidate that passed so far is not rejected. */
static mgl_status note_missing(passage *p, mgl_status status, mgl_error *err)
{
    if (status != MGL_DEVICE || p->out->compiled)
        return status;
    snprintf(p->out->not_compiled, sizeof p->out->not_compiled, "%.390s",
             err ? err->message : "there is no compiler");
    return MGL_OK;
}

static mgl_status pass_compiler(passage *p, mgl_error *err)
{
    mgl_plan *plan = NULL;
    mgl_dimensions dimensions;
    mgl_error why = {0};
    mgl_status status = mgl_kernel_context_read(p->c->unit, &p->context, &why);
    if (!status)
        status = lower(p, &plan, &why);
    if (!status) {
        mgl_dimensions_of_program(plan->program, &dimensions);
        status = check_needs(p, &dimensions);
    }
    if (!status && !is_refused(p) && !p->options->no_compile)
        status = note_missing(p, compile(p, plan, &dimensions, &why), &why);
    mgl_plan_close(plan);
    mgl_kernel_context_clear(&p->context);
    if (status && err)
        *err = why;
    return status;
}

/* ---- all gates ------------------------------------------------------------------------------- */

mgl_status mgl_kernel_verify(const mgl_kernel_candidate *candidate,
                             const mgl_kernel_options *options, mgl_kernel_result *out,
                             mgl_error *err)
{
    typedef mgl_status gate_fn(passage * p, mgl_error * err);
    static gate_fn *const gates[] = {pass_regions, pass_duplicate, pass_launch, pass_scan,
                                     pass_compiler};
    static const mgl_kernel_options none;
    passage *p = mgl_alloc_zero(1, sizeof *p);
    *out = (mgl_kernel_result){.verdict.outcome = MGL_OUTCOME_UNMEASURED};
    if (!p)
        return mgl_fail_memory(err, sizeof *p);
    p->c = candidate;
    p->options = options ? options : &none;
    p->arch = p->options->arch ? p->options->arch : "sm_90a";
    p->out = out;
    p->before = candidate->before ? candidate->before
                                  : mgl_kernel_unit_text(candidate->unit, &p->before_length);
    if (candidate->before)
        p->before_length = candidate->before_length;
    mgl_status status = MGL_OK;
    for (size_t i = 0; i < sizeof gates / sizeof *gates && !status && !is_refused(p); i++)
        status = gates[i](p, err);
    if (!status && p->options->no_compile && !is_refused(p))
        snprintf(out->not_compiled, sizeof out->not_compiled,
                 "the gates ended before the compiler, as they were told to");
    out->own_ptx = p->own.ptx;
    out->own_ptx_length = p->own.ptx_length;
    p->own.ptx = NULL;
    mgl_kernel_compiled_clear(&p->own);
    mgl_free(p);
    if (status)
        mgl_kernel_result_clear(out);
    return status;
}
