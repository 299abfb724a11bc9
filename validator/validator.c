/*
 * The driver of the validator: it runs the passes in order, each only if the passes that it relies
 * on found nothing, and serves the list of codes. check.h describes the passes and why one epoch
 * represents all.
 */
#include "validator/validator.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/memory.h"
#include "validator/check.h"

typedef void pass_fn(mgl_check *check);

/* In this order. A fault ends the check after its row; passes of one row do not rely on each other.
 */
enum { ROW = 3 };
static pass_fn *const passes[][ROW] = {
    {mgl_check_form},
    {mgl_check_shared},
    {mgl_check_limits, mgl_check_operands},
    {mgl_check_bounds, mgl_check_variants, mgl_check_rows},
    {mgl_boxes_make},
    {mgl_check_flags},
    {mgl_check_relations, mgl_check_deadlock},
    {mgl_order_compute},
    {mgl_check_epochs},
    {mgl_check_race, mgl_check_complete},
    {mgl_check_init, mgl_check_model},
    {mgl_check_weights, mgl_check_meaning, mgl_check_formats},
    {mgl_check_joined, mgl_check_cached},
};

static void check_clear(mgl_check *check)
{
    mgl_free(check->queue_of);
    mgl_free(check->position);
    mgl_free(check->producer_first);
    mgl_free(check->producers);
    mgl_free(check->order);
    mgl_free(check->clock_of);
    mgl_free(check->clocks);
    mgl_free(check->boxes.of_region);
    mgl_free(check->boxes.boxes);
    mgl_free(check->boxes.first);
    mgl_free(check->boxes.overlapping);
    mgl_free(check->flags.writer);
    mgl_free(check->flags.parts);
    mgl_free(check->graph_tensor);
    mgl_free(check->cached);
}

/* Runs the passes and returns how many rows of them were run. */
static size_t check_list(mgl_check *check)
{
    size_t rows = sizeof passes / sizeof *passes, i = 0;
    for (; i < rows && mgl_check_clean(check); i++)
        for (int j = 0; j < ROW && !check->no_memory; j++)
            if (passes[i][j])
                passes[i][j](check);
    return i;
}

/* Checks the second list, if the first list is well formed. */
static void check_second(mgl_check *first)
{
    mgl_check check = {.program = first->program->second,
                       .first = first,
                       .graph = first->graph,
                       .strict_formats = first->strict_formats,
                       .verdict = first->verdict,
                       .steps = first->steps,
                       .sample = -1};
    check_list(&check);
    check_clear(&check);
    first->found += check.found;
    first->no_memory |= check.no_memory;
}

/* Ends a check that began at `start`, and releases it. */
static mgl_status finish(mgl_check *check, double start, mgl_error *err)
{
    mgl_verdict *out = check->verdict;
    check_clear(check);
    out->accepted = mgl_check_clean(check);
    MGL_ASSERT(check->no_memory || out->accepted == (out->count == 0));
    out->ms = 1e3 * (mgl_clock_s() - start);
    return check->no_memory ? mgl_fail_memory(err, 0) : MGL_OK;
}

static mgl_verdict verdict_of(const mgl_program *program)
{
    return (mgl_verdict){
        .tasks = program->task_count, .counters = program->counter_count, .epochs_unrolled = 1};
}

static mgl_status run_passes(const mgl_program *program, const mgl_graph *graph,
                             bool strict_formats, mgl_verdict *out, mgl_error *err)
{
    double start = mgl_clock_s();
    *out = verdict_of(program);
    mgl_check check = {.program = program,
                       .graph = graph,
                       .strict_formats = strict_formats,
                       .verdict = out,
                       .sample = -1};
    bool formed = check_list(&check) > 1;
    if (formed && !check.no_memory && program->second) {
        out->tasks += program->second->task_count;
        out->counters = program->second->counter_count;
        check_second(&check);
    }
    return finish(&check, start, err);
}

mgl_status mgl_validator_check(const mgl_program *program, const mgl_graph *graph, mgl_verdict *out,
                               mgl_error *err)
{
    return run_passes(program, graph, false, out, err);
}

mgl_status mgl_validator_check_strict(const mgl_program *program, const mgl_graph *graph,
                                      mgl_verdict *out, mgl_error *err)
{
    return run_passes(program, graph, true, out, err);
}

mgl_status mgl_validator_check_pair(const mgl_program *program, const mgl_program *owner,
                                    const mgl_graph *graph, mgl_verdict *out, mgl_error *err)
{
    double start = mgl_clock_s();
    *out = verdict_of(program);
    mgl_check of_owner = {
        .program = owner, .graph = graph, .in_pair = true, .verdict = out, .sample = -1};
    mgl_check check = {
        .program = program, .graph = graph, .in_pair = true, .verdict = out, .sample = -1};
    check_list(&of_owner);
    check.found = of_owner.found;
    check.no_memory = of_owner.no_memory;
    check_list(&check);
    if (mgl_check_clean(&check) && !check.no_memory)
        mgl_check_pair(&check, &of_owner);
    check_clear(&of_owner);
    return finish(&check, start, err);
}

void mgl_verdict_clear(mgl_verdict *verdict)
{
    for (int i = 0; i < verdict->count; i++) {
        mgl_diagnostic *diagnostic = &verdict->diagnostics[i];
        for (int j = 0; j < diagnostic->witness_count; j++)
            mgl_free(diagnostic->witness[j]);
        mgl_free(diagnostic->witness);
        mgl_free(diagnostic->message);
    }
    mgl_free(verdict->diagnostics);
    *verdict = (mgl_verdict){0};
}

static const mgl_code_info codes[] = {
#define MGL_CODE(number, title, meaning, example, remedy) {number, title, meaning, example, remedy},
#include "validator/codes.def"
#undef MGL_CODE
};

const mgl_code_info *mgl_validator_codes(int *count)
{
    *count = (int)(sizeof codes / sizeof *codes);
    return codes;
}

const mgl_code_info *mgl_validator_explain(int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return &codes[i];
    return NULL;
}
