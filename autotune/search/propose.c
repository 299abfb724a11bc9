/*
 * The memory of a search: stores the trials that a proposer has learned, with their values on the
 * chain of incumbents (chain.h), and credits the changes that each trial made. Implements the first
 * part of propose.h; propose_draw.c implements the draws.
 */
#include "autotune/search/propose.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_GAIN 1e-4 /* smallest gain in the log value that counts as an improvement */
/* if the start was improved by more than this in the log value, it is called poor */
#define POOR       0.1
#define BETTER     1e-3 /* a smaller gain in the log value does not end a plateau */
#define MUCH       0.1  /* a gain in the log value that counts as large */
#define DEVIATIONS 3.92 /* width of a trial's interval in standard deviations */
#define UNBOUNDED  0.01 /* standard deviation assumed for a trial with an unbounded interval */

/* ---- values --------------------------------------------------------------------------------- */

/* Objective of the incumbent's medians in us; 0: the trial was not measured. */
static double incumbent_of(const mgl_trial *trial)
{
    double us[MGL_MAX_WORKLOADS];
    for (int w = 0; w < trial->workload_count; w++)
        us[w] = trial->workloads[w].incumbent_us;
    return mgl_objective(us, trial->workload_count);
}

/* Whether the program ran correctly, or was proved where nothing runs. */
static bool is_correct(mgl_outcome outcome)
{
    return mgl_outcome_is_correct(outcome) || outcome == MGL_OUTCOME_UNMEASURED;
}

double mgl_search_value(const mgl_search *search, const mgl_known *known)
{
    if (!known->correct)
        return 0;
    if (known->measured > 0)
        return known->measured;
    double ratio = search->ratio_count ? search->ratio_sum / search->ratio_count : 0;
    return known->predicted * exp(ratio);
}

double mgl_search_start_value(const mgl_search *search)
{
    const mgl_known start = {
        .correct = true, .measured = search->default_us, .predicted = search->start_predicted};
    return mgl_search_value(search, &start);
}

const mgl_known *mgl_search_incumbent(const mgl_search *search)
{
    const mgl_known *best = NULL;
    double least = mgl_search_start_value(search);
    if (search->default_us > 0 && search->chain.number == 0)
        return NULL;
    if (search->default_us > 0 && (best = mgl_search_find(search, search->chain.number)) != NULL)
        return best;
    for (size_t i = 0; i < search->known_count; i++) {
        double value = mgl_search_value(search, &search->known[i]);
        if (value > 0 && (least <= 0 || value < least)) {
            best = &search->known[i];
            least = value;
        }
    }
    return best;
}

bool mgl_search_is_far(const mgl_search *search)
{
    double start = mgl_search_start_value(search);
    if (search->known_count == 0)
        return !search->subject->has_costs;
    return start <= 0 || (search->best_value > 0 && log(start / search->best_value) > POOR);
}

bool mgl_search_wants_moves(const mgl_search *search)
{
    const mgl_search_space *space = &search->subject->space;
    return space->moves &&
           (space->count == 0 || !mgl_search_is_far(search) || search->stalled >= MGL_SETTLED);
}

bool mgl_search_passes(const mgl_search *search, const mgl_known *parent, double predicted)
{
    double before = parent ? parent->predicted : search->start_predicted;
    return !(predicted > 0 && before > 0 && predicted > before * (1 + MGL_SCREEN_MARGIN));
}

double mgl_search_predict(const mgl_search *search, const mgl_schedule_config *config,
                          const mgl_moves *moves)
{
    mgl_proposal proposal = {.config = *config, .moves = moves ? *moves : (mgl_moves){0}};
    mgl_candidate candidate;
    double us = 0;
    if (mgl_check_abort(search->abort, NULL) || !search->subject->has_costs ||
        mgl_gate_lower(search->subject, &proposal, &candidate, NULL))
        return 0;
    if (candidate.verdict.outcome == MGL_OUTCOME_UNMEASURED) {
        mgl_gate_predict(search->subject, &candidate);
        us = candidate.predicted;
    }
    mgl_candidate_clear(&candidate);
    return us;
}

void mgl_ranking_add(mgl_ranking *r, const mgl_known *known, double value)
{
    int at = r->count;
    while (at > 0 && r->values[at - 1] > value)
        at--;
    if (at >= r->room)
        return;
    r->count += r->count < r->room;
    const size_t behind = (size_t)(r->count - 1 - at);
    memmove(&r->known[at + 1], &r->known[at], behind * sizeof *r->known);
    memmove(&r->values[at + 1], &r->values[at], behind * sizeof *r->values);
    r->known[at] = known;
    r->values[at] = value;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static mgl_status open_search(mgl_search *search, const mgl_proposer_options *options,
                              mgl_error *err)
{
    const mgl_search_space *space = &options->subject->space;
    search->subject = options->subject;
    search->abort = options->abort;
    search->start = options->start ? *options->start : options->subject->start;
    for (int i = 0; i < space->count; i++) {
        search->numbers[i] = mgl_knob_find(space->knobs[i].name);
        if (search->numbers[i] < 0)
            return mgl_fail(err, MGL_BAD_INPUT, space->knobs[i].name,
                            "is not a knob of a ScheduleConfig");
    }
    search->start_predicted = mgl_search_predict(search, &search->start, NULL);
    return MGL_OK;
}

void mgl_search_close(mgl_search *search)
{
    for (size_t i = 0; i < search->known_count; i++)
        mgl_moves_clear(&search->known[i].moves);
    mgl_free(search->known);
    mgl_free(search->order);
    mgl_free(search->tried);
}

static mgl_status learn(mgl_proposer *self, const mgl_trial *trial, mgl_error *err)
{
    return mgl_search_learn((mgl_search *)self, trial, err);
}

static void close_search(mgl_proposer *self)
{
    mgl_search_close((mgl_search *)self);
    mgl_free(self);
}

mgl_status mgl_search_make(size_t size, const mgl_proposer *self,
                           const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err)
{
    mgl_search *search = mgl_alloc_zero(1, size);
    if (!search)
        return mgl_fail_memory(err, size);
    search->proposer = *self;
    search->proposer.apart = true;
    if (!self->learn)
        search->proposer.learn = learn;
    if (!self->close)
        search->proposer.close = close_search;
    mgl_status status = open_search(search, options, err);
    if (status)
        search->proposer.close(&search->proposer);
    else
        *out = &search->proposer;
    return status;
}

/* ---- set of tried configs (open addressing) -------------------------------------------------- */

static uint64_t hash_int(uint64_t hash, int value)
{
    uint64_t state = hash ^ (uint64_t)(uint32_t)value;
    return mgl_draw(&state);
}

/* Hash of a config with moves; never 0. */
static uint64_t hash_of(const mgl_schedule_config *config, const mgl_moves *moves)
{
    uint64_t hash = 1;
    for (int k = 0; k < MGL_KNOB_ROWS; k++)
        hash = hash_int(hash, mgl_knob_get(config, k));
    for (int i = 0; moves && i < moves->count; i++) {
        const mgl_move *m = &moves->moves[i];
        const int fields[] = {(int)m->kind, m->layer, m->step, m->from, m->to, m->count};
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
            hash = hash_int(hash, fields[f]);
    }
    return hash ? hash : 1;
}

/* Index of a hash, or of the free entry where it belongs (linear probing). */
static size_t place_of(const uint64_t *set, size_t size, uint64_t hash)
{
    size_t at = (size_t)hash & (size - 1);
    while (set[at] && set[at] != hash)
        at = (at + 1) & (size - 1);
    return at;
}

static mgl_status grow_tried(mgl_search *search, mgl_error *err)
{
    size_t size = search->tried_size ? 2 * search->tried_size : 256;
    uint64_t *set = mgl_alloc_zero(size, sizeof *set);
    if (!set)
        return mgl_fail_memory(err, size * sizeof *set);
    for (size_t i = 0; i < search->tried_size; i++)
        if (search->tried[i])
            set[place_of(set, size, search->tried[i])] = search->tried[i];
    mgl_free(search->tried);
    search->tried = set;
    search->tried_size = size;
    return MGL_OK;
}

static mgl_status add_tried(mgl_search *search, uint64_t hash, mgl_error *err)
{
    if (2 * search->tried_count >= search->tried_size) {
        mgl_status status = grow_tried(search, err);
        if (status)
            return status;
    }
    size_t at = place_of(search->tried, search->tried_size, hash);
    search->tried_count += search->tried[at] == 0;
    search->tried[at] = hash;
    return MGL_OK;
}

bool mgl_search_is_new(const mgl_search *search, const mgl_schedule_config *config,
                       const mgl_moves *moves)
{
    return search->tried_size == 0 ||
           !search->tried[place_of(search->tried, search->tried_size, hash_of(config, moves))];
}

/* ---- learning ------------------------------------------------------------------------------- */

/* Binary search: the first index of `order` whose number is not less. */
static size_t find_place(const mgl_search *search, int64_t number)
{
    size_t lo = 0, hi = search->known_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (search->known[search->order[mid]].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const mgl_known *mgl_search_find(const mgl_search *search, int64_t number)
{
    size_t place = find_place(search, number);
    if (place == search->known_count)
        return NULL;
    const mgl_known *found = &search->known[search->order[place]];
    return found->number == number ? found : NULL;
}

/* Makes room for one more entry in both lists. */
static bool grow(mgl_search *search)
{
    return mgl_grow((void **)&search->known, &search->known_capacity, search->known_count,
                    sizeof *search->known) &&
           mgl_grow((void **)&search->order, &search->order_capacity, search->known_count,
                    sizeof *search->order);
}

static void add_known(mgl_search *search, const mgl_known *known)
{
    size_t place = find_place(search, known->number), behind = search->known_count - place;
    memmove(&search->order[place + 1], &search->order[place], behind * sizeof *search->order);
    search->order[place] = search->known_count;
    search->known[search->known_count++] = *known;
}

/* Whether the outcome describes the program, rather than the proposer or the device. */
static bool says_something(mgl_outcome outcome)
{
    int exit = mgl_outcome_exit(outcome);
    return is_correct(outcome) || outcome == MGL_OUTCOME_DUPLICATE || exit == MGL_EXIT_REFUSED ||
           exit == MGL_EXIT_INCORRECT;
}

/* Advances the chain by a trial. Returns the trial's us on the chain; 0: not measured. */
static double chain_on(mgl_search *search, const mgl_trial *trial)
{
    double incumbent = incumbent_of(trial);
    mgl_chain_reach(&search->chain, trial);
    if (!(incumbent > 0))
        return 0;
    if (search->default_us <= 0) {
        search->default_us = incumbent;
        mgl_chain_begin(&search->chain, incumbent);
    }
    double us = search->chain.value * exp(-trial->gain);
    if (mgl_chain_has(trial))
        mgl_chain_add(&search->chain, trial, us);
    return us;
}

/* Parses the code of "MG203: ..."; 0: there is none. */
static int code_of(const mgl_trial *trial)
{
    int code = 0;
    return sscanf(trial->verdict.diagnostic, "MG%3d", &code) == 1 ? code : 0;
}

/* The result of a change. */
struct result {
    bool refused, priced;
    double gain, missed; /* change of the log value; `missed`: measured minus predicted gain, if
                          * priced */
    int code;
};

static void credit(mgl_credit *to, bool higher, const struct result *r)
{
    to->tries++;
    to->refused += r->refused;
    to->better += r->gain > LEAST_GAIN;
    to->gain += r->gain > LEAST_GAIN ? r->gain : 0;
    to->priced[higher] += r->priced;
    to->missed[higher] += r->priced ? r->missed : 0;
    if (r->refused && r->code)
        to->code = r->code;
}

int mgl_moves_common(const mgl_moves *a, const mgl_moves *b)
{
    int count = 0;
    while (count < a->count && count < b->count && a->moves[count].kind == b->moves[count].kind &&
           a->moves[count].layer == b->moves[count].layer &&
           a->moves[count].step == b->moves[count].step &&
           a->moves[count].from == b->moves[count].from &&
           a->moves[count].to == b->moves[count].to &&
           a->moves[count].count == b->moves[count].count)
        count++;
    return count;
}

/* Credits every knob and move that the trial changed with the result. */
static void credit_changes(mgl_search *search, const mgl_known *known, int code)
{
    const mgl_known start = {.config = search->start};
    const mgl_known *parent = mgl_search_find(search, known->parent);
    double before = parent ? mgl_search_value(search, parent) : mgl_search_start_value(search);
    double value = mgl_search_value(search, known);
    double predicted = parent ? parent->predicted : search->start_predicted;
    struct result r = {.refused = !known->correct, .code = code};
    r.gain = value > 0 && before > 0 ? log(before / value) : 0;
    r.priced = r.gain != 0 && known->measured > 0 && known->predicted > 0 && predicted > 0 &&
               (!parent || parent->measured > 0);
    r.missed = r.priced ? r.gain - log(predicted / known->predicted) : 0;
    if (!parent)
        parent = &start;
    for (int i = 0; i < search->subject->space.count; i++) {
        int k = search->numbers[i];
        int now = mgl_knob_get(&known->config, k), old = mgl_knob_get(&parent->config, k);
        if (now != old)
            credit(&search->knobs[k], now > old, &r);
    }
    for (int i = mgl_moves_common(&known->moves, &parent->moves); i < known->moves.count; i++)
        credit(&search->moves[known->moves.moves[i].kind], false, &r);
}

/* Standard deviation of a measured trial's gain. */
static double deviation_of(const mgl_trial *trial)
{
    double deviation = (trial->gain_hi - trial->gain_lo) / DEVIATIONS;
    return deviation >= 0 && deviation < UNBOUNDED ? deviation : UNBOUNDED;
}

static void take_values(mgl_search *search, const mgl_trial *trial, mgl_known *known)
{
    double us = chain_on(search, trial);
    const mgl_known *same = trial->verdict.outcome == MGL_OUTCOME_DUPLICATE
                                ? mgl_search_find(search, trial->duplicate_of)
                                : NULL;
    known->duplicate = trial->verdict.outcome == MGL_OUTCOME_DUPLICATE;
    known->correct = is_correct(trial->verdict.outcome);
    known->measured = known->correct ? us : 0;
    known->deviation = known->measured > 0 ? deviation_of(trial) : 0;
    known->predicted = trial->predicted_us;
    if (known->duplicate && trial->duplicate_of == 0) { /* a duplicate of the start config */
        known->correct = true;
        known->measured = search->default_us;
        known->predicted = search->start_predicted;
    } else if (same) {
        known->correct = same->correct;
        known->measured = same->measured;
        known->deviation = same->deviation;
        known->predicted = same->predicted;
    } else if (known->measured > 0 && known->predicted > 0) {
        search->ratio_sum += log(known->measured / known->predicted);
        search->ratio_count++;
    }
}

/* Whether the trial is quarantined or has a tainted parent. A quarantined program's error may be
 * present in every program derived from it. A kept trial counts as correct. */
static bool is_tainted(const mgl_search *search, const mgl_trial *trial)
{
    const mgl_known *parent = mgl_search_find(search, trial->proposal.parent);
    return trial->quarantined > 0 ||
           (parent && parent->tainted && trial->verdict.outcome != MGL_OUTCOME_OK);
}

static void note_progress(mgl_search *search, const mgl_known *known)
{
    double value = mgl_search_value(search, known);
    search->stalled++;
    search->looks++;
    if (search->least_value <= 0)
        search->least_value = mgl_search_start_value(search);
    if (value > 0 && search->least_value > 0 && log(search->least_value / value) > MUCH)
        search->looks = 0;
    if (value > 0 && (search->least_value <= 0 || value < search->least_value))
        search->least_value = value;
    if (value > 0 &&
        (search->best_value <= 0 || log(search->best_value / value) > BETTER + known->deviation)) {
        search->best_value = value;
        search->stalled = 0;
    }
}

mgl_status mgl_search_learn(mgl_search *search, const mgl_trial *trial, mgl_error *err)
{
    mgl_known known = {.number = trial->number,
                       .parent = trial->proposal.parent,
                       .config = trial->proposal.config};
    if (trial->control || trial->proposal.schedule || !says_something(trial->verdict.outcome)) {
        chain_on(search, trial);
        return MGL_OK;
    }
    if (mgl_search_find(search, trial->number))
        return mgl_fail(err, MGL_USAGE, search->proposer.name, "trial %lld was told twice",
                        (long long)trial->number);
    mgl_status status =
        mgl_moves_copy(&trial->proposal.moves, trial->proposal.moves.count, &known.moves, err);
    if (!status)
        status = add_tried(search, hash_of(&known.config, &known.moves), err);
    if (!status && !grow(search))
        status = mgl_fail_memory(err, sizeof known);
    if (status) {
        mgl_moves_clear(&known.moves);
        return status;
    }
    take_values(search, trial, &known);
    credit_changes(search, &known, code_of(trial));
    known.tainted = is_tainted(search, trial);
    known.correct &= !known.tainted;
    note_progress(search, &known);
    add_known(search, &known);
    return MGL_OK;
}
