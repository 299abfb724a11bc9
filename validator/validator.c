/*
 * The driver: runs the passes in their order, each only when those it relies on found nothing, and
 * hands out the list of codes. What is proved, and why one epoch stands for all, says check.h.
 */
#include "validator/validator.h"

#include "base/clock.h"
#include "base/memory.h"
#include "validator/check.h"

typedef void pass_fn(mgl_check *check);

/* In this order; a fault ends the row it stands in. Passes of one row do not rely on each other. */
static pass_fn *const passes[][2] = {
    {mgl_check_form, NULL},
    {mgl_check_limits, mgl_check_operands},
    {mgl_check_bounds, NULL},
    {mgl_boxes_make, NULL},
    {mgl_check_flags, NULL},
    {mgl_check_relations, mgl_check_deadlock},
    {mgl_order_compute, NULL},
    {mgl_check_epochs, NULL},
    {mgl_check_race, mgl_check_complete},
    {mgl_check_init, mgl_check_model},
    {mgl_check_weights, mgl_check_meaning},
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
}

mgl_status mgl_validator_check(const mgl_program *program, const mgl_graph *graph, mgl_verdict *out,
                               mgl_error *err)
{
    double start = mgl_clock_s();
    *out = (mgl_verdict){
        .tasks = program->task_count, .counters = program->counter_count, .epochs_unrolled = 1};
    mgl_check check = {.program = program, .graph = graph, .verdict = out, .sample = -1};
    size_t rows = sizeof passes / sizeof *passes;
    for (size_t i = 0; i < rows && mgl_check_clean(&check); i++)
        for (int j = 0; j < 2 && !check.no_memory; j++)
            if (passes[i][j])
                passes[i][j](&check);
    check_clear(&check);
    out->accepted = mgl_check_clean(&check);
    out->ms = 1e3 * (mgl_clock_s() - start);
    if (check.no_memory)
        return mgl_fail_memory(err, 0);
    return MGL_OK;
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
