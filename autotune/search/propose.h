/*
 * The search state shared by all proposers: a memory of trials, configs known to be rejected by
 * lowering, and random draws of knob changes and moves. The state is rebuilt by learning the trials
 * in order.
 *
 * A search compares trials by their value in microseconds. Measured values form a chain (chain.h):
 * the default has the time of the first pairs, and each trial has the value of its incumbent at
 * that time multiplied by exp(-gain). So a slow drift of the device does not change the comparison.
 * If only some trials are measured, predictions are corrected by the mean log ratio of measured and
 * predicted values.
 */
#ifndef MGL_AUTOTUNE_SEARCH_PROPOSE_H
#define MGL_AUTOTUNE_SEARCH_PROPOSE_H

#include "autotune/search/chain.h"
#include "autotune/search/proposer.h"

enum {
    MGL_LINEAGE_MOVES = 12, /* limit of the moves that a program has beyond its config */
    MGL_SETTLED = 20 /* trials without an improvement, after which small steps are preferred */
};

/* A trial in the memory of a search. */
typedef struct mgl_known {
    int64_t number, parent;
    mgl_schedule_config config;
    mgl_moves moves;
    bool correct;     /* usable as a parent: ran correctly, or was proved where nothing runs */
    bool tainted;     /* the trial or an ancestor was quarantined; not usable as a parent */
    bool duplicate;   /* the program of an earlier trial, tried again */
    double measured;  /* us on the chain of incumbents; 0: not measured */
    double deviation; /* standard deviation of the log value, from the interval of its gain */
    double predicted; /* us; 0: not predicted */
} mgl_known;

/* Credit assignment: the results of changing one knob, or of one kind of move. */
typedef struct mgl_credit {
    int tries, refused, better;
    double gain; /* sum of log(before / after) over the improvements */
    int code;    /* validator code of the last rejection; 0: none */
    /* Index 0: lower knob values; index 1: higher values. Moves use index 0. */
    int priced[2];    /* measured trials that also had predictions */
    double missed[2]; /* sum of (measured gain - predicted gain) */
} mgl_credit;

/* The search state. Must be the first member of each proposer's struct. */
typedef struct mgl_search {
    mgl_proposer proposer; /* first member: the interface that the campaign holds */
    const mgl_subject *subject;
    const atomic_int *abort; /* may be NULL */
    mgl_schedule_config start;
    double start_predicted;     /* us; 0: not predicted */
    int numbers[MGL_MAX_KNOBS]; /* (space.count) config knob of each knob in the space */
    mgl_known *known;           /* (known_count) the learned trials, in the order of learning */
    size_t known_count, known_capacity;
    /* (known_count) indices into `known`, sorted by trial number; `known` itself is not sorted if
     * several workers run trials */
    size_t *order;
    size_t order_capacity;
    /* (tried_size, a power of two) hash set of configs with moves; 0: free entry */
    uint64_t *tried;
    size_t tried_count, tried_size;
    double default_us;  /* us, start of the chain; 0: nothing was measured yet */
    mgl_chain chain;    /* the values are in us */
    double best_value;  /* us; 0: none yet */
    int stalled;        /* trials since the last improvement */
    double least_value; /* smallest value of all trials and the start, in us; 0: none yet */
    int looks;          /* trials since the last large improvement */
    double ratio_sum;   /* sum of log(measured / predicted) */
    int ratio_count;
    mgl_credit knobs[MGL_KNOB_ROWS], moves[MGL_MOVE_COUNT];
} mgl_search;

/* Makes a proposer: `size` bytes, zeroed, that begin with an open search. `self` has the name and
 * the functions. The functions `learn` and `close` may be NULL: the search learns, and nothing else
 * has to be released. */
mgl_status mgl_search_make(size_t size, const mgl_proposer *self,
                           const mgl_proposer_options *options, mgl_proposer **out, mgl_error *err);
void mgl_search_close(mgl_search *search); /* releases what it owns, but not itself */
mgl_status mgl_search_learn(mgl_search *search, const mgl_trial *trial, mgl_error *err);

/* The trial of that number, or NULL. */
const mgl_known *mgl_search_find(const mgl_search *search, int64_t number);
/* us, comparable with the values of all trials; 0: rejected, incorrect or of unknown speed */
double mgl_search_value(const mgl_search *search, const mgl_known *known);
/* us of the start config; 0: unknown. */
double mgl_search_start_value(const mgl_search *search);
/* The best program: the last kept trial or, if nothing is measured, the best known one. NULL: the
 * start. */
const mgl_known *mgl_search_incumbent(const mgl_search *search);
/* Whether the start is poor, so that large changes are useful: a much better program was found, or
 * the speed of the start is unknown. */
bool mgl_search_is_far(const mgl_search *search);
/* Whether moves are useful now. If the start is poor, knob changes gain more. */
bool mgl_search_wants_moves(const mgl_search *search);
/* Whether the predicted time of a program with this parent (NULL: the start) is within
 * MGL_SCREEN_MARGIN. `predicted` 0: not predicted, passes. */
bool mgl_search_passes(const mgl_search *search, const mgl_known *parent, double predicted);
/* The best of some trials, the smallest value first. */
enum { MGL_MOST_RANKED = 10 };
typedef struct mgl_ranking {
    int room; /* at most MGL_MOST_RANKED */
    int count;
    const mgl_known *known[MGL_MOST_RANKED]; /* (count) */
    double values[MGL_MOST_RANKED];          /* (count) */
} mgl_ranking;
/* Adds a trial if its value is among the `room` smallest. Of equal values, the first stays ahead.
 */
void mgl_ranking_add(mgl_ranking *ranking, const mgl_known *known, double value);
/* The length of the common prefix of two lists of moves. */
int mgl_moves_common(const mgl_moves *a, const mgl_moves *b);
/* The predicted objective in us; 0: no costs, or the program cannot be made. */
double mgl_search_predict(const mgl_search *search, const mgl_schedule_config *config,
                          const mgl_moves *moves);

/* mgl_search_fits: whether lowering accepts the config for every number of sequences, and its
 * shared memory fits the target. The check takes microseconds, and keeps rejected configs from
 * being proposed. mgl_search_is_new: whether the config with moves was not tried yet. */
bool mgl_search_fits(const mgl_search *search, const mgl_schedule_config *config);
bool mgl_search_is_new(const mgl_search *search, const mgl_schedule_config *config,
                       const mgl_moves *moves);

/* ---- random draws (a function of the search and the state) ----------------------------------- */

double mgl_draw_unit(uint64_t *state); /* in [0, 1) */
/* Draws an index with probability proportional to weights (count, not negative). -1: all are 0. */
int mgl_draw_weighted(uint64_t *state, const double *weights, int count);

/* Sets a knob of the space (by index). With flag exchange, the queues of o and down change
 * together. */
void mgl_search_set_knob(const mgl_search *search, int knob, int value,
                         mgl_schedule_config *config);
/* Sets a knob of the space (by index) to another value: the adjacent value with probability 1/2,
 * else any. With counter exchange, the queues of o and down also change together with probability
 * 3/4, so that flags become possible. False: there is no other value. */
bool mgl_search_change_knob(const mgl_search *search, int knob, uint64_t *state,
                            mgl_schedule_config *config);
/* Probability weights of each value of the space's knobs, from the trials so far. */
typedef struct mgl_taste {
    double weights[MGL_MAX_KNOBS][MGL_MAX_KNOB_VALUES]; /* (space.count) (values) */
} mgl_taste;
/* Computes the weights of the values by Laplace's rule of succession: the share of the latest
 * trials with this value that are among the best eighth. */
void mgl_search_get_taste(const mgl_search *search, mgl_taste *out);
/* Changes `count` knobs. Knobs that helped before are drawn more often. Values are drawn by
 * `taste`; NULL: as in mgl_search_change_knob. False: nothing changed. */
bool mgl_search_change_knobs(const mgl_search *search, const mgl_taste *taste, int count,
                             uint64_t *state, mgl_schedule_config *config);
/* Draws every knob uniformly until the config fits. False: none was found. */
bool mgl_search_draw_config(const mgl_search *search, uint64_t *state, mgl_schedule_config *config);
/* Changes each knob with probability 1/2. False: nothing changed. */
bool mgl_search_scatter(const mgl_search *search, uint64_t *state, mgl_schedule_config *config);
/* Uniform crossover: takes each knob from one of the two configs. Exchange and the queues of o and
 * down come from the same config. */
void mgl_search_cross(const mgl_search *search, const mgl_schedule_config *other, uint64_t *state,
                      mgl_schedule_config *config);
/* Appends up to `count` moves that fit the config's program after its existing moves. Kinds are
 * drawn by their credit. *added is the number of appended moves. Fails only if memory runs out. */
mgl_status mgl_search_add_moves(const mgl_search *search, const mgl_schedule_config *config,
                                int count, uint64_t *state, mgl_moves *moves, int *added,
                                mgl_error *err);
mgl_status mgl_moves_copy(const mgl_moves *from, int count, mgl_moves *to, mgl_error *err);

/* How promising a change is: (better + 1) / (tries + 2), Laplace's rule of succession. */
double mgl_credit_promise(const mgl_credit *credit);
/* Draws a kind of move by weight, then a move of that kind. If none fits, draws another kind. */
bool mgl_search_draw_move(const mgl_search *search, const mgl_program *program, uint64_t *state,
                          mgl_move *out);

/* ---- local steps (propose_near.c) ------------------------------------------------------------ */

enum { MGL_NEAR_DRAWS = 8 /* drafts that the cost model prices for one proposal */ };

/* A proposal in progress; it owns its moves. */
typedef struct mgl_draft {
    const mgl_known *parent; /* NULL: the start config */
    mgl_schedule_config config;
    mgl_moves moves;
    double predicted; /* us; 0: not predicted */
} mgl_draft;

mgl_status mgl_draft_begin(const mgl_search *search, const mgl_known *parent, mgl_draft *out,
                           mgl_error *err);
/* Predicts the time of a draft if costs are known. False: the draft does not fit, was tried before,
 * is predicted to be too slow, or gives the program `other` (may be NULL). */
bool mgl_draft_price(const mgl_search *search, const mgl_program *other, mgl_draft *draft);

enum { MGL_BATCH_DRAFTS = 16 };

/* Drafts that are priced in parallel (propose_price.c). The batch owns their moves. */
typedef struct mgl_batch {
    mgl_draft drafts[MGL_BATCH_DRAFTS]; /* (count) */
    uint64_t states[MGL_BATCH_DRAFTS];  /* random state after each draw */
    int places[MGL_BATCH_DRAFTS]; /* defined by the caller: where to continue after each draft */
    bool hopes[MGL_BATCH_DRAFTS]; /* result of mgl_draft_price for each */
    int count;
} mgl_batch;

/* The number of drafts to draw: limited by the processors and by `most`. */
int mgl_batch_room(const mgl_search *search, int most);
/* Takes ownership of the draft's moves. */
void mgl_batch_add(mgl_batch *batch, const mgl_draft *draft, uint64_t state, int place);
/* Prices all drafts, and fills `hopes`. */
void mgl_batch_price(const mgl_search *search, const mgl_program *other, mgl_batch *batch);
/* Releases the drafts from index `from` on, and empties the batch. Earlier drafts belong to the
 * caller. */
void mgl_batch_clear(mgl_batch *batch, int from);

/* Draws local steps from the incumbent, or from a program that may be as good: knobs change to an
 * adjacent value, moves of one kind are added, or changes of earlier successful trials are
 * combined. Returns at most `most` drafts in out (*count); all are new, priced and promising.
 * Without costs, one draft is enough. The caller releases each. */
mgl_status mgl_search_draw_near(const mgl_search *search, int most, uint64_t *state, mgl_draft *out,
                                int *count, mgl_error *err);
/* Picks a draft by its prediction, by the past error of the cost model for similar changes, and by
 * chance (Thompson sampling). */
int mgl_search_pick(const mgl_search *search, const mgl_draft *drafts, int count, uint64_t *state);

/* ---- far steps (propose_far.c) --------------------------------------------------------------- */

/* Descends over the corrected cost model to a config predicted to be better than the incumbent.
 * While far steps still find much better programs it runs on every call, afterwards on some calls.
 * *found false: no such config, or there are no costs. */
mgl_status mgl_search_look_far(const mgl_search *search, uint64_t *state, mgl_draft *out,
                               bool *found, mgl_error *err);

/* Makes a draft the proposal, with the list of its changes as hypothesis. Takes ownership of the
 * moves. */
mgl_status mgl_search_propose(const mgl_search *search, mgl_draft *draft, mgl_proposal *out,
                              mgl_error *err);

#endif
