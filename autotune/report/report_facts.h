/* What a report tells, gathered in one pass over the store: shared by its HTML and its Markdown. */
#ifndef MGL_AUTOTUNE_REPORT_REPORT_FACTS_H
#define MGL_AUTOTUNE_REPORT_REPORT_FACTS_H

#include "autotune/report/answer.h"
#include "autotune/report/report.h"
#include "autotune/report/report_plays.h"
#include "autotune/search/gate.h"
#include "autotune/search/space.h"

/* Where a trial stands against the campaign's default: logarithm of how many times as fast. */
typedef struct report_point {
    int64_t number;
    float value, lo, hi; /* of measured trials with their interval; predicted: all the same */
    float gain;          /* over what it was measured against */
    mgl_outcome outcome;
    bool measured, kept, control;
} report_point;

/* Outcomes, and the validator's codes of those that it rejected: so many are told apart. */
enum { REPORT_REFUSALS = MGL_OUTCOME_COUNT + 78, REPORT_REFUSAL_NAME = 32 };

/* What changing something did: against the trial that it stood on. */
typedef struct report_effect {
    char name[48];
    int64_t tried, refused, correct;
    double sum;                     /* of log ratios, of those that have a value */
    double best;                    /* the largest of them */
    int64_t valued;                 /* that have one */
    char most[REPORT_REFUSAL_NAME]; /* the commonest of what was no success; "": there is none */
    int64_t most_count;
    int64_t refusals[REPORT_REFUSALS]; /* of each, in order of their first appearance */
} report_effect;

/* An outcome with an example. */
typedef struct report_refusal {
    char name[REPORT_REFUSAL_NAME]; /* "NO_GAIN", "REJECTED MG202" */
    mgl_outcome outcome;
    int64_t count, example; /* number of the first such trial */
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
} report_refusal;

typedef struct report_proposer {
    char name[32];
    int64_t trials, kept;
    double seconds;
} report_proposer;

/* A line of the campaign's log. */
typedef struct report_event {
    int64_t unix_s;
    char kind[16], text[240];
} report_event;

enum { REPORT_EVENTS = 50 };

/* A trial that was kept, and found wrong at an end. */
enum { REPORT_QUARANTINED = 8 };
typedef struct report_quarantined {
    char line[2 * MGL_MAX_DIAGNOSTIC];
} report_quarantined;

enum { REPORT_EFFECTS = MGL_MAX_KNOBS + MGL_MOVE_COUNT, REPORT_PROPOSERS = 16 };

typedef struct report_facts {
    const mgl_campaign_record *campaign;
    bool measures;           /* its device has a clock: else all values are predicted */
    mgl_workloads workloads; /* count 0: they could not be read */
    report_point *points;    /* (point_count) in order of trials */
    size_t point_count, point_capacity;
    report_effect effects[REPORT_EFFECTS]; /* (effect_count) knobs, then moves */
    int effect_count, first_move;
    report_refusal refusals[REPORT_REFUSALS]; /* (refusal_count) by outcome, then by code */
    int refusal_count;
    report_proposer proposers[REPORT_PROPOSERS]; /* (proposer_count) */
    int proposer_count;
    mgl_trial best; /* the incumbent, with nothing of its pairs; number 0: the default */
    mgl_answer_best_facts steps;         /* the incumbent's: of what was kept */
    double best_predicted;               /* the lowest objective that was predicted, us; 0: none */
    double best_each[MGL_MAX_WORKLOADS]; /* (workloads) of the same trial */
    int64_t best_predicted_number;
    report_plays plays;                 /* start_us: what predicted values stand against */
    int64_t played_best;                /* the trial whose play is the best; 0: the default */
    report_event events[REPORT_EVENTS]; /* the last ones; of number n at n % REPORT_EVENTS */
    int64_t event_count;                /* of those that a report shows */
    int64_t trials, measured, kept, controls, bad_controls, dropped_pairs, pairs;
    double control_largest; /* |gain| of a control */
    double compile_s, gpu_s;
    int64_t requests, tokens; /* of chat */
    mgl_answer_chat_facts chat;
    mgl_answer_final_facts final;
    report_quarantined quarantined[REPORT_QUARANTINED]; /* (quarantined_count) the first ones */
    int quarantined_count;
} report_facts;

/* Release with report_facts_clear, after a failure too. */
mgl_status report_facts_gather(mgl_store *store, const mgl_campaign_record *campaign,
                               report_facts *out, mgl_error *err);
void report_facts_clear(report_facts *facts);

/* What the incumbent gained, a sentence: report_facts.final where it was measured. */
void report_put_best(const report_facts *facts, mgl_text *out);
/* What the sum of its steps is worth, a sentence. */
extern const char report_of_steps[];

/* Percent faster, of a logarithm of a ratio. */
double report_percent(double log_ratio);

/* "batch 1, context 8192" of workload `w`, or its number. */
void report_put_workload(const report_facts *facts, int w, mgl_text *out);
/* "7.5e-03"; "-" where nothing was compared. */
void report_put_error(double error, mgl_text *out);

/* "2026-05-01 23:10", of the world's time. */
void report_put_time(int64_t unix_s, mgl_text *out);
/* A name as one word of a shell. */
void report_put_quoted(const char *name, mgl_text *out);
/* The lines of a proposal, as `campaign submit` takes it: what the incumbent is made again from. */
void report_print_best(const report_facts *facts, mgl_text *out);

/* What trials ran on, one sentence. */
const char *report_weights(const report_facts *facts);
/* Whether there is a predicted winner in place of a measured one; and how that is exported. */
bool report_has_prediction(const report_facts *facts);
extern const char report_of_prediction[];
/* How a campaign that kept nothing is made again, one sentence. */
void report_put_seed(const report_facts *facts, mgl_text *out);
/* What compiling and launches took, one sentence; nothing where nothing was launched. */
void report_put_device_time(const report_facts *facts, mgl_text *out);

/* "2.3 h", "41 min", "12 s" */
void report_put_seconds(double seconds, mgl_text *out);

#endif
