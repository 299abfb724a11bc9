/* Implements prompt.h: the parts of a request and the template engine. */
#include "autotune/agents/prompt.h"

#include "base/format.h"
#include "base/text.h"
#include "eval/synthetic.h"
#include "schedule/knobs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *mgl_prompt_find(const char *name)
{
    for (int i = 0; i < mgl_prompt_source_count; i++)
        if (!strcmp(mgl_prompt_sources[i].name, name))
            return (const char *)mgl_prompt_sources[i].text;
    return "";
}

const char *mgl_prompt_system(void)
{
    return mgl_prompt_find("autotune/agents/prompts/system.md");
}

/* ---- the parts ------------------------------------------------------------------------------- */

static void put_device(const mgl_prompt *p, mgl_text *out)
{
    const mgl_target *target = &p->subject->target;
    mgl_text_format(out, "%s, %s, %d queues, %lld bytes of shared memory a block", p->device,
                    target->arch, target->queues, (long long)target->shared_bytes);
    if (p->subject->has_costs)
        mgl_text_format(out, ", %.0f GB/s", p->subject->costs.bandwidth);
}

static void put_model(const mgl_prompt *p, mgl_text *out)
{
    const mgl_geometry *m = &p->subject->config.geometry;
    mgl_text workloads = {0};
    char weights[MGL_SYNTHETIC_TEXT];
    mgl_synthetic_print_formats(&p->subject->config, weights);
    mgl_workloads_print(&p->subject->workloads, &workloads);
    mgl_text_format(out,
                    "%s: hidden %d, %d layers, %d heads, %d of the cache, head_dim %d, ffn %d, "
                    "vocabulary %d, %s%s%s; capacity %d positions; %s (%d tokens a launch)",
                    p->shape, m->hidden, m->layers, m->heads, m->kv_heads, m->head_dim, m->ffn,
                    m->vocab, mgl_dtype_name(p->subject->dtype), weights[0] ? ", weights " : "",
                    weights, p->subject->capacity, workloads.bytes ? workloads.bytes : "",
                    MGL_WORKLOAD_TOKENS);
    out->failed |= workloads.failed;
    mgl_text_clear(&workloads);
}

static void put_knobs(const mgl_prompt *p, mgl_text *out)
{
    const mgl_search_space *space = &p->subject->space;
    for (int i = 0; i < space->count; i++) {
        const mgl_knob *knob = &space->knobs[i];
        int value = mgl_knob_get(&p->best->config, mgl_knob_find(knob->name));
        mgl_text_format(out, "%s%s = %d (", i ? "\n" : "", knob->name, value);
        for (int v = 0; v < knob->count; v++)
            mgl_text_format(out, "%s%d", v ? ", " : "", knob->values[v]);
        mgl_text_format(out, "): %s", mgl_knob_row_get(mgl_knob_find(knob->name))->what);
    }
}

static void put_moves(const mgl_prompt *p, mgl_text *out)
{
    bool first = true;
    mgl_text_put(out,
                 "STEP is qkv, attend, merge, o, gate_up, down or head; from and to are queues.\n");
    for (int kind = 0; kind < MGL_MOVE_COUNT; kind++) {
        if (!(p->subject->space.moves & 1u << kind))
            continue;
        mgl_text_put(out, first ? "" : "\n");
        mgl_move_print_usage((mgl_move_kind)kind, out);
        mgl_text_format(out, ": %s", mgl_move_what((mgl_move_kind)kind));
        first = false;
    }
}

static void put_best(const mgl_prompt *p, mgl_text *out)
{
    mgl_proposal shown = {.config = p->best->config, .moves = p->best->moves};
    if (p->best_number)
        mgl_text_format(out, "trial %lld:\n", (long long)p->best_number);
    else
        mgl_text_put(out, "the default:\n");
    mgl_proposal_print(&shown, out);
}

/* The estimated distribution of the first workload's time per token, from the cost model. */
static void put_time(const mgl_prompt *p, mgl_text *out)
{
    mgl_candidate made = {0};
    mgl_cost cost;
    const mgl_workload *load = &p->subject->workloads.list[0];
    mgl_cost_load of = {load->batch, load->context + (MGL_WORKLOAD_TOKENS - 1) / 2.0,
                        MGL_WORKLOAD_TOKENS};
    if (!p->subject->has_costs) {
        mgl_text_put(out, "unknown: the cost of steps was not measured on this device");
        return;
    }
    if (mgl_gate_make(p->subject, p->best, &made, NULL) || made.program_count == 0 ||
        mgl_schedule_cost(made.programs[made.program_of[0]], &p->subject->costs, &of, &cost, NULL))
        mgl_text_put(out, "not known");
    else {
        mgl_text_format(out, "predicted %.1f us a token (batch %d, context %d), of which", cost.us,
                        load->batch, load->context);
        for (int i = 0; i < MGL_COST_PART_COUNT; i++)
            mgl_text_format(out, "%s %s %.1f", i ? "," : "", mgl_cost_part_name((mgl_cost_part)i),
                            cost.parts[i]);
        mgl_text_format(out, "; reading the bytes alone would take %.1f us", cost.floor_us);
    }
    mgl_candidate_clear(&made);
}

static void put_history(const mgl_prompt *p, mgl_text *out)
{
    mgl_text_put(out, p->history && p->history[0] ? p->history : "none yet");
}

static void put_number(const mgl_prompt *p, mgl_text *out)
{
    mgl_text_format(out, "%lld", (long long)p->number);
}

static void put_border(const mgl_prompt *p, mgl_text *out)
{
    mgl_text_format(out, "%016" PRIx64, p->border);
}

/* ---- the whole request ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*put)(const mgl_prompt *, mgl_text *);
} parts[] = {{"number", put_number}, {"device", put_device},   {"model", put_model},
             {"knobs", put_knobs},   {"moves", put_moves},     {"best", put_best},
             {"time", put_time},     {"history", put_history}, {"border", put_border}};

/* Replaces the name between {{ and }} by a part; unknown names by nothing. */
static void put_part(const void *user, const char *name, size_t length, mgl_text *out)
{
    const mgl_prompt *p = user;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (mgl_text_is(name, length, parts[i].name))
            parts[i].put(p, out);
}

void mgl_prompt_fill(const char *text, mgl_prompt_put_fn *put, const void *user, mgl_text *out)
{
    const char *at = text, *open;
    while ((open = strstr(at, "{{"))) {
        const char *close = strstr(open, "}}");
        if (!close)
            break;
        mgl_text_append(out, at, (size_t)(open - at));
        put(user, open + 2, (size_t)(close - open - 2), out);
        at = close + 2;
    }
    mgl_text_put(out, at);
}

void mgl_prompt_task(const mgl_prompt *prompt, mgl_text *out)
{
    mgl_prompt_fill(mgl_prompt_find("autotune/agents/prompts/task.md"), put_part, prompt, out);
}

/* ---- history --------------------------------------------------------------------------------- */

/* The difference to the campaign's start. */
static void put_difference(const mgl_subject *subject, const mgl_proposal *proposal, mgl_text *out)
{
    for (int k = 0; k < mgl_knob_count(); k++) {
        int value = mgl_knob_get(&proposal->config, k);
        if (value != mgl_knob_get(&subject->start, k))
            mgl_text_format(out, " %s=%d", mgl_knob_name(k), value);
    }
    for (int i = 0; i < proposal->moves.count && i < 16; i++) {
        mgl_text_put(out, "; ");
        mgl_move_print(&proposal->moves.moves[i], out);
    }
    if (proposal->schedule)
        mgl_text_put(out, " a schedule text");
}

void mgl_prompt_describe_trial(const mgl_subject *subject, const mgl_trial *trial, mgl_text *out)
{
    char shown[MGL_MAX_DIAGNOSTIC + 1];
    mgl_text_format(out, "trial %lld:", (long long)trial->number);
    put_difference(subject, &trial->proposal, out);
    mgl_text_format(out, " -> %s", mgl_outcome_name(trial->verdict.outcome));
    if (trial->p_value >= 0 && mgl_outcome_is_correct(trial->verdict.outcome))
        mgl_text_format(out, ", %+.2f %% (%+.2f to %+.2f)", 100 * trial->gain, 100 * trial->gain_lo,
                        100 * trial->gain_hi);
    else if (trial->predicted_us > 0)
        mgl_text_format(out, ", predicted %.1f us", trial->predicted_us);
    mgl_format_into(shown, sizeof shown, "%s", trial->verdict.diagnostic);
    if (shown[0])
        mgl_text_format(out, ": %s", shown);
    mgl_text_put(out, "\n");
}
