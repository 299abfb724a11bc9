/*
 * What the proposers share: a search that remembers every trial it was told of, knows which
 * configs lowering refuses, and draws changes of knobs and moves. All of it is rebuilt by
 * learning, in order.
 *
 * A search compares trials by their value. Measured ones stand on a chain: the default has the
 * time of the first pairs, and each trial the value of its incumbent at that time times
 * exp(-gain), so that a device that becomes slower over the night makes no trial look worse.
 * Where some trials were measured and others are only predicted, predictions are corrected by
 * the mean log ratio of the two.
 */
#ifndef MGL_AUTOTUNE_SEARCH_PROPOSE_H
#define MGL_AUTOTUNE_SEARCH_PROPOSE_H

#include "autotune/search/chain.h"
#include "autotune/search/proposer.h"

enum {
    MGL_LINEAGE_MOVES = 12, /* that a program of a search stands from its config at most */
    MGL_SETTLED = 20        /* trials without a better one, after which small steps are worth it */
};

/* A trial, as a search remembers it. */
typedef struct mgl_known {
    int64_t number, parent;
    mgl_schedule_config config;
    mgl_moves moves;
    bool correct;     /* could be gone on from: run and right, or proved where nothing runs */
    bool tainted;     /* it was condemned, or stands on such a trial: not gone on from */
    bool duplicate;   /* the same program as an earlier trial's */
    double measured;  /* us on the chain; 0: not measured */
    double deviation; /* of the logarithm of that, by the interval of its gain */
    double predicted; /* us; 0: none */
} mgl_known;

/* What became of changes of one knob, or of moves of one kind. */
typedef struct mgl_credit {
    int tries, refused, better;
    double gain; /* of log(before / after) of those that were better, all together */
    int code;    /* of the validator, the last one that refused it; 0: none */
    /* Of lower values and of higher ones; of moves: the first. */
    int priced[2];    /* tries that were measured, with predictions */
    double missed[2]; /* by which their gains were above the predicted ones, all together */
} mgl_credit;

/* A search: the first member of each proposer's own struct. */
typedef struct mgl_search {
    mgl_proposer proposer; /* first: what the campaign holds */
    const mgl_subject *subject;
    const atomic_int *abort; /* or NULL */
    mgl_schedule_config start;
    double start_predicted;     /* us; 0: none */
    int numbers[MGL_MAX_KNOBS]; /* (space.count) of the space's knobs, in a config */
    mgl_known *known;           /* (known_count) as they were told */
    size_t known_count, known_capacity;
    size_t
        *order; /* (known_count) places in `known`, by number: several workers tell out of turn */
    size_t order_capacity;
    uint64_t *tried; /* (tried_size, a power of two) hashes of configs with moves; 0: free */
    size_t tried_count, tried_size;
    double default_us;  /* of the chain; 0: nothing was measured yet */
    mgl_chain chain;    /* in us */
    double best_value;  /* us; 0: none yet */
    int stalled;        /* trials since it became better */
    double least_value; /* us, of all trials and the start; 0: none yet */
    int looks;          /* trials since it became much better */
    double ratio_sum;   /* of log(measured / predicted) */
    int ratio_count;
    mgl_credit knobs[MGL_KNOB_ROWS], moves[MGL_MOVE_COUNT];
} mgl_search;

/* Of a zeroed struct. */
mgl_status mgl_search_open(mgl_search *search, const mgl_proposer_options *options, mgl_error *err);
void mgl_search_close(mgl_search *search);
mgl_status mgl_search_learn(mgl_search *search, const mgl_trial *trial, mgl_error *err);

/* The trial of that number, or NULL. */
const mgl_known *mgl_search_find(const mgl_search *search, int64_t number);
/* us, comparable with those of every other trial; 0: refused, incorrect or of no known speed. */
double mgl_search_value(const mgl_search *search, const mgl_known *known);
/* The same of the start. */
double mgl_search_start_value(const mgl_search *search);
/* The best program: what was kept last, or, where nothing is measured, the best of those that are
 * known. NULL: the start. */
const mgl_known *mgl_search_incumbent(const mgl_search *search);
/* Whether the start is a poor one, from which a search has to go far: something much better was
 * found, or nothing is known of its speed. */
bool mgl_search_is_far(const mgl_search *search);
/* Whether moves are worth a trial: far from a poor start's goal, knobs gain more. */
bool mgl_search_wants_moves(const mgl_search *search);
/* Whether the cost model leaves hope for what stands on `parent` (NULL: the start); 0: it says
 * nothing. */
bool mgl_search_passes(const mgl_search *search, const mgl_known *parent, double predicted);
/* How many of the moves of `a` are also the first of `b`. */
int mgl_moves_common(const mgl_moves *a, const mgl_moves *b);
/* The objective by the cost model; 0: no costs, or the program can not be made. */
double mgl_search_predict(const mgl_search *search, const mgl_schedule_config *config,
                          const mgl_moves *moves);

/* Whether lowering takes the config, for every number of sequences, and the target has the
 * shared memory: microseconds, so that what is refused is never proposed. */
bool mgl_search_fits(const mgl_search *search, const mgl_schedule_config *config);
bool mgl_search_is_new(const mgl_search *search, const mgl_schedule_config *config,
                       const mgl_moves *moves);

/* ---- drawing: equal state, equal draw
 * --------------------------------------------------------- */

double mgl_draw_unit(uint64_t *state); /* in [0, 1) */
/* An index by weights (count) that are not negative; -1: all are 0. */
int mgl_draw_weighted(uint64_t *state, const double *weights, int count);

/* Gives the space's knob (its index) the value; with flags, o and down go together. */
void mgl_search_set_knob(const mgl_search *search, int knob, int value,
                         mgl_schedule_config *config);
/* Gives the space's knob (its index) another value: often the next one, else any. With counters
 * o and down go together most of the time as well, so that flags can follow. False: it has no
 * other. */
bool mgl_search_change_knob(const mgl_search *search, int knob, uint64_t *state,
                            mgl_schedule_config *config);
/* How often each value of the space's knobs is drawn, by what is known of it. */
typedef struct mgl_taste {
    double weights[MGL_MAX_KNOBS][MGL_MAX_KNOB_VALUES]; /* (space.count) (values) */
} mgl_taste;
/* By Laplace's rule of succession: how many of the trials with a value, of the latest, are in
 * the best eighth of these. */
void mgl_search_get_taste(const mgl_search *search, mgl_taste *out);
/* Changes `count` knobs, those that helped before more often, to values by taste; without one
 * (NULL) as mgl_search_change_knob. False: nothing changed. */
bool mgl_search_change_knobs(const mgl_search *search, const mgl_taste *taste, int count,
                             uint64_t *state, mgl_schedule_config *config);
/* Every knob anew, any value: of configs that fit. False: none was found. */
bool mgl_search_draw_config(const mgl_search *search, uint64_t *state, mgl_schedule_config *config);
/* Knob for knob from one or the other; exchange and the queues of o and down from the same. */
void mgl_search_cross(const mgl_search *search, const mgl_schedule_config *other, uint64_t *state,
                      mgl_schedule_config *config);
/* Appends up to `count` moves that fit the config's program with the moves before them, kinds
 * by what became of them so far. *added says how many. Fails only where memory runs out. */
mgl_status mgl_search_add_moves(const mgl_search *search, const mgl_schedule_config *config,
                                int count, uint64_t *state, mgl_moves *moves, int *added,
                                mgl_error *err);
mgl_status mgl_moves_copy(const mgl_moves *from, int count, mgl_moves *to, mgl_error *err);

/* How promising a change is: by Laplace's rule of succession, with one try more that helped. */
double mgl_credit_promise(const mgl_credit *credit);
/* Draws a kind by weight, and a move of that kind; kinds of which none fits are tried no more. */
bool mgl_search_draw_move(const mgl_search *search, const mgl_program *program, uint64_t *state,
                          mgl_move *out);

/* ---- near steps (propose_near.c) ------------------------------------------------------------- */

enum { MGL_NEAR_DRAWS = 8 /* that the cost model prices for a proposal */ };

/* A proposal in the making; it owns its moves. */
typedef struct mgl_draft {
    const mgl_known *parent; /* NULL: the start */
    mgl_schedule_config config;
    mgl_moves moves;
    double predicted; /* us; 0: none */
} mgl_draft;

mgl_status mgl_draft_begin(const mgl_search *search, const mgl_known *parent, mgl_draft *out,
                           mgl_error *err);
/* Prices a draft where there are costs. False: it does not fit, was tried, leaves no hope, or is
 * the program `other` (or NULL). */
bool mgl_draft_price(const mgl_search *search, const mgl_program *other, mgl_draft *draft);

enum { MGL_BATCH_DRAFTS = 16 };

/* Drafts that are priced beside each other (propose_price.c). It owns their moves. */
typedef struct mgl_batch {
    mgl_draft drafts[MGL_BATCH_DRAFTS]; /* (count) */
    uint64_t states[MGL_BATCH_DRAFTS];  /* behind each */
    int places[MGL_BATCH_DRAFTS];       /* the caller's: where it goes on behind each */
    bool hopes[MGL_BATCH_DRAFTS];       /* what mgl_draft_price says of each */
    int count;
} mgl_batch;

/* How many to draw: by the processors, and `most` at most. */
int mgl_batch_room(const mgl_search *search, int most);
/* Takes the draft's moves. */
void mgl_batch_add(mgl_batch *batch, const mgl_draft *draft, uint64_t state, int place);
/* Prices all, and says which of them leave hope. */
void mgl_batch_price(const mgl_search *search, const mgl_program *other, mgl_batch *batch);
/* Releases the drafts from `from` on, and empties the batch: the caller has taken the others. */
void mgl_batch_clear(mgl_batch *batch, int from);

/* Draws small steps from the incumbent, or from a program that may be as good: knobs at a
 * neighbouring value, moves of one kind, or what earlier trials gained joined. `most` at most, all
 * of them new, priced and with hope; *count says how many. Where nothing is priced, one is enough.
 * Release each. */
mgl_status mgl_search_draw_near(const mgl_search *search, int most, uint64_t *state, mgl_draft *out,
                                int *count, mgl_error *err);
/* The draft that is best by its prediction, by what the cost model missed with the like of it so
 * far, and by chance. */
int mgl_search_pick(const mgl_search *search, const mgl_draft *drafts, int count, uint64_t *state);

/* ---- far steps (propose_far.c) --------------------------------------------------------------- */

/* A config that the cost model, corrected by what it missed so far, holds to be better than the
 * incumbent: the end of a descent. As long as that leads to much better programs, it is looked for
 * each time, then now and then. *found false: there is none, or nothing is priced. */
mgl_status mgl_search_look_far(const mgl_search *search, uint64_t *state, mgl_draft *out,
                               bool *found, mgl_error *err);

/* Fills a proposal that stands on `parent` (NULL: the start): what changed becomes its
 * hypothesis. Takes the moves over. */
mgl_status mgl_search_propose(const mgl_search *search, const mgl_known *parent,
                              const mgl_schedule_config *config, mgl_moves *moves,
                              mgl_proposal *out, mgl_error *err);

#endif
