/*
 * Random draws of a search: knob values, configs, moves, and the text of a proposal. Every draw is
 * a function of the search and of the random state. Implements the drawing part of propose.h.
 */
#include "autotune/search/propose.h"

#include "base/format.h"
#include "base/memory.h"
#include "schedule/lower/choose.h"
#include "vm/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

enum { LATEST = 400 /* trials that rate values */ };

double mgl_draw_unit(uint64_t *state)
{
    return (double)(mgl_draw(state) >> 11) * 0x1p-53;
}

int mgl_draw_weighted(uint64_t *state, const double *weights, int count)
{
    double sum = 0;
    int last = -1;
    for (int i = 0; i < count; i++)
        sum += weights[i];
    double at = mgl_draw_unit(state) * sum;
    for (int i = 0; i < count; i++) {
        if (!(weights[i] > 0))
            continue;
        last = i;
        if ((at -= weights[i]) < 0)
            break;
    }
    return last;
}

/* ---- configs that fit ------------------------------------------------------------------------ */

bool mgl_search_fits(const mgl_search *search, const mgl_schedule_config *config)
{
    const mgl_subject *subject = search->subject;
    const mgl_workloads *all = &subject->workloads;
    for (int w = 0; w < all->count; w++) {
        mgl_choices choices;
        mgl_lower_options options = {.dtype = subject->dtype,
                                     .capacity = subject->capacity,
                                     .sequences = all->list[w].batch};
        if (w > 0 && all->list[w].batch == all->list[w - 1].batch)
            continue;
        if (mgl_schedule_choose(subject->graph, &subject->target, &options, config, &choices, NULL))
            return false;
        const mgl_program program = {
            .exec = choices.exec,
            .limits = {.rows = choices.rows, .second_rows = choices.second_rows}};
        if (subject->target.shared_bytes > 0 &&
            mgl_cuda_shared_bytes(&program) > (size_t)subject->target.shared_bytes)
            return false;
    }
    return true;
}

/* ---- knobs ---------------------------------------------------------------------------------- */

static const mgl_knob *knob_of(const mgl_search *search, int number)
{
    for (int i = 0; i < search->subject->space.count; i++)
        if (search->numbers[i] == number)
            return &search->subject->space.knobs[i];
    return NULL;
}

/* Sets a knob to a value if the space contains it. */
static void set_if_there(const mgl_search *search, int number, int value,
                         mgl_schedule_config *config)
{
    const mgl_knob *knob = knob_of(search, number);
    for (int v = 0; knob && v < knob->count; v++)
        if (knob->values[v] == value)
            mgl_knob_set(config, number, value);
}

/* Flag exchange requires equal queue runs for o and down: copies the run of `from` to `to`. */
static void tie(const mgl_search *search, mgl_step from, mgl_step to, mgl_schedule_config *config)
{
    set_if_there(search, mgl_knob_first(to), config->queues[from].first, config);
    set_if_there(search, mgl_knob_run(to), config->queues[from].count, config);
}

/* Adapts the knobs that depend on a changed knob. */
static void follow(const mgl_search *search, int number, mgl_schedule_config *config)
{
    if (number == mgl_knob_first(MGL_STEP_DOWN) || number == mgl_knob_run(MGL_STEP_DOWN))
        tie(search, MGL_STEP_DOWN, MGL_STEP_O, config);
    else if (number == mgl_knob_first(MGL_STEP_O) || number == mgl_knob_run(MGL_STEP_O) ||
             number == mgl_knob_find("exchange"))
        tie(search, MGL_STEP_O, MGL_STEP_DOWN, config);
}

void mgl_search_set_knob(const mgl_search *search, int knob, int value, mgl_schedule_config *config)
{
    int number = search->numbers[knob];
    mgl_knob_set(config, number, value);
    if (config->exchange != MGL_EXCHANGE_COUNTERS)
        follow(search, number, config);
}

/* Draws another value: the next one up or down with probability 1/2, else any. */
static int draw_value(const mgl_knob *knob, int value, uint64_t *state)
{
    int below = 0, equal = 0;
    for (int v = 0; v < knob->count; v++) {
        below += knob->values[v] < value;
        equal += knob->values[v] == value;
    }
    bool up = mgl_draw_below(state, 2) != 0;
    int next = up ? below + equal : below - 1;
    if (mgl_draw_below(state, 2) && next >= 0 && next < knob->count)
        return knob->values[next];
    int any = (int)mgl_draw_below(state, (uint64_t)(knob->count - equal));
    return knob->values[equal && any >= below ? any + 1 : any];
}

bool mgl_search_change_knob(const mgl_search *search, int knob, uint64_t *state,
                            mgl_schedule_config *config)
{
    const mgl_knob *values = &search->subject->space.knobs[knob];
    int number = search->numbers[knob], value = mgl_knob_get(config, number);
    if (values->count == 0 || (values->count == 1 && values->values[0] == value))
        return false;
    mgl_search_set_knob(search, knob, draw_value(values, value, state), config);
    if (config->exchange == MGL_EXCHANGE_COUNTERS && mgl_draw_below(state, 4))
        follow(search, number, config);
    return true;
}

double mgl_credit_promise(const mgl_credit *credit)
{
    return (credit->better + 1.0) / (credit->tries + 2.0);
}

/* ---- value weights --------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The us below which a trial counts as good: the best eighth of the latest trials. */
static double good_value(const mgl_search *search, size_t from)
{
    double values[LATEST];
    size_t count = 0;
    for (size_t i = from; i < search->known_count; i++) {
        double value = mgl_search_value(search, &search->known[i]);
        if (value > 0)
            values[count++] = value;
    }
    qsort(values, count, sizeof *values, by_size);
    return count ? values[count / 8] : 0;
}

void mgl_search_get_taste(const mgl_search *search, mgl_taste *out)
{
    const mgl_search_space *space = &search->subject->space;
    size_t from = search->known_count > LATEST ? search->known_count - LATEST : 0;
    double bound = good_value(search, from);
    for (int k = 0; k < space->count; k++)
        for (int v = 0; v < space->knobs[k].count; v++) {
            int tries = 0, good = 0;
            for (size_t i = from; i < search->known_count; i++) {
                const mgl_known *known = &search->known[i];
                double value = mgl_search_value(search, known);
                if (mgl_knob_get(&known->config, search->numbers[k]) != space->knobs[k].values[v])
                    continue;
                tries++;
                good += value > 0 && value <= bound;
            }
            out->weights[k][v] = (good + 1.0) / (tries + 2.0);
        }
}

/* Changes a knob to a value drawn by the weights. False: the knob has no other value. */
static bool change_by_taste(const mgl_search *search, const mgl_taste *taste, int knob,
                            uint64_t *state, mgl_schedule_config *config)
{
    const mgl_knob *values = &search->subject->space.knobs[knob];
    double weights[MGL_MAX_KNOB_VALUES];
    int value = mgl_knob_get(config, search->numbers[knob]);
    for (int v = 0; v < values->count; v++)
        weights[v] = values->values[v] == value ? 0 : taste->weights[knob][v];
    int chosen = mgl_draw_weighted(state, weights, values->count);
    if (chosen >= 0)
        mgl_search_set_knob(search, knob, values->values[chosen], config);
    return chosen >= 0;
}

bool mgl_search_change_knobs(const mgl_search *search, const mgl_taste *taste, int count,
                             uint64_t *state, mgl_schedule_config *config)
{
    double weights[MGL_MAX_KNOBS];
    bool changed = false;
    int knobs = search->subject->space.count;
    for (int i = 0; i < knobs; i++)
        weights[i] = mgl_credit_promise(&search->knobs[search->numbers[i]]);
    for (int i = 0; i < count; i++) {
        int knob = mgl_draw_weighted(state, weights, knobs);
        if (knob < 0)
            break;
        weights[knob] = 0;
        changed |= taste ? change_by_taste(search, taste, knob, state, config)
                         : mgl_search_change_knob(search, knob, state, config);
    }
    return changed;
}

bool mgl_search_draw_config(const mgl_search *search, uint64_t *state, mgl_schedule_config *config)
{
    enum { TRIES = 500 };
    const mgl_search_space *space = &search->subject->space;
    for (int t = 0; t < TRIES; t++) {
        mgl_schedule_config drawn = search->start;
        for (int i = 0; i < space->count; i++) {
            const mgl_knob *knob = &space->knobs[i];
            if (knob->count > 0)
                mgl_knob_set(&drawn, search->numbers[i],
                             knob->values[mgl_draw_below(state, (uint64_t)knob->count)]);
        }
        if (mgl_draw_below(state, 4))
            tie(search, MGL_STEP_O, MGL_STEP_DOWN, &drawn);
        if (!mgl_search_fits(search, &drawn))
            continue;
        *config = drawn;
        return true;
    }
    return false;
}

bool mgl_search_scatter(const mgl_search *search, uint64_t *state, mgl_schedule_config *config)
{
    bool changed = false;
    for (int i = 0; i < search->subject->space.count; i++)
        if (mgl_draw_below(state, 2))
            changed |= mgl_search_change_knob(search, i, state, config);
    return changed;
}

/* Whether the knob affects the choice between flag exchange and counter exchange. */
static bool is_tied(int number)
{
    return number == mgl_knob_find("exchange") || number == mgl_knob_first(MGL_STEP_O) ||
           number == mgl_knob_run(MGL_STEP_O) || number == mgl_knob_first(MGL_STEP_DOWN) ||
           number == mgl_knob_run(MGL_STEP_DOWN);
}

void mgl_search_cross(const mgl_search *search, const mgl_schedule_config *other, uint64_t *state,
                      mgl_schedule_config *config)
{
    bool tied = mgl_draw_below(state, 4) == 0;
    for (int i = 0; i < search->subject->space.count; i++) {
        int number = search->numbers[i];
        bool take = mgl_draw_below(state, 4) == 0;
        if (is_tied(number) ? tied : take)
            mgl_knob_set(config, number, mgl_knob_get(other, number));
    }
}

/* ---- moves ---------------------------------------------------------------------------------- */

mgl_status mgl_moves_copy(const mgl_moves *from, int count, mgl_moves *to, mgl_error *err)
{
    mgl_status status = MGL_OK;
    for (int i = 0; i < count && !status; i++)
        status = mgl_moves_add(to, &from->moves[i], err);
    return status;
}

bool mgl_search_draw_move(const mgl_search *search, const mgl_program *program, uint64_t *state,
                          mgl_move *out)
{
    double weights[MGL_MOVE_COUNT];
    for (int k = 0; k < MGL_MOVE_COUNT; k++)
        weights[k] =
            search->subject->space.moves & 1u << k ? mgl_credit_promise(&search->moves[k]) : 0;
    for (int i = 0; i < MGL_MOVE_COUNT; i++) {
        int kind = mgl_draw_weighted(state, weights, MGL_MOVE_COUNT);
        if (kind < 0)
            return false;
        if (mgl_move_draw(program, 1u << kind, state, out))
            return true;
        weights[kind] = 0;
    }
    return false;
}

mgl_status mgl_search_add_moves(const mgl_search *search, const mgl_schedule_config *config,
                                int count, uint64_t *state, mgl_moves *moves, int *added,
                                mgl_error *err)
{
    mgl_status status = MGL_OK;
    *added = 0;
    while (*added < count && moves->count < MGL_LINEAGE_MOVES && !status) {
        mgl_proposal proposal = {.config = *config, .moves = *moves};
        mgl_candidate candidate;
        mgl_move move;
        bool drawn = false;
        if ((status = mgl_gate_lower(search->subject, &proposal, &candidate, err)))
            break;
        if (candidate.verdict.outcome == MGL_OUTCOME_UNMEASURED && candidate.program_count > 0)
            drawn = mgl_search_draw_move(search, candidate.programs[0], state, &move);
        mgl_candidate_clear(&candidate);
        if (!drawn)
            break;
        status = mgl_moves_add(moves, &move, err);
        *added += !status;
    }
    return status;
}

/* ---- proposals ------------------------------------------------------------------------------ */

/* Describes the changes in one line: "page_bytes 2560 -> 8192; shift layer=3 step=o from=2
 * count=1". */
static void describe(const mgl_search *search, const mgl_draft *draft, mgl_text *out)
{
    const mgl_known *parent = draft->parent;
    const mgl_schedule_config *before = parent ? &parent->config : &search->start;
    for (int k = 0; k < MGL_KNOB_ROWS; k++)
        if (mgl_knob_get(before, k) != mgl_knob_get(&draft->config, k))
            mgl_text_format(out, "%s%s %d -> %d", out->length ? "; " : "", mgl_knob_name(k),
                            mgl_knob_get(before, k), mgl_knob_get(&draft->config, k));
    for (int i = parent ? parent->moves.count : 0; i < draft->moves.count; i++) {
        mgl_text_put(out, out->length ? "; " : "");
        mgl_move_print(&draft->moves.moves[i], out);
    }
    if (out->length == 0)
        mgl_text_put(out, "the start");
}

mgl_status mgl_search_propose(const mgl_search *search, mgl_draft *draft, mgl_proposal *out,
                              mgl_error *err)
{
    mgl_text text = {0};
    char line[MGL_MAX_HYPOTHESIS + 1];
    describe(search, draft, &text);
    mgl_format_into(line, sizeof line, "%s", text.bytes ? text.bytes : "");
    bool failed = text.failed;
    mgl_text_clear(&text);
    out->proposer = mgl_strdup(search->proposer.name);
    out->hypothesis = mgl_strdup(line);
    out->parent = draft->parent ? draft->parent->number : 0;
    out->config = draft->config;
    out->moves = draft->moves;
    draft->moves = (mgl_moves){0};
    return failed || !out->proposer || !out->hypothesis ? mgl_fail_memory(err, sizeof line)
                                                        : MGL_OK;
}
