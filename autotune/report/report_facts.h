/* The data of a report, collected in one pass over the store. Shared by the HTML and the Markdown
 * report. */
#ifndef MGL_AUTOTUNE_REPORT_REPORT_FACTS_H
#define MGL_AUTOTUNE_REPORT_REPORT_FACTS_H

#include "autotune/answers/answer.h"
#include "autotune/candidates/gate.h"
#include "autotune/candidates/space.h"
#include "autotune/report/report.h"
#include "autotune/report/report_plays.h"

/* The value of a trial: the log of its speed relative to the campaign's default. */
typedef struct report_point {
    int64_t number;
    float value, lo, hi; /* a measured trial has an interval [lo, hi]; a prediction has three equal
                          * values */
    float gain;          /* relative to the incumbent at the time of the trial */
    mgl_outcome outcome;
    bool measured, kept, control;
} report_point;

/* Limit of distinct outcomes, including the validator's codes of rejected trials. */
enum { REPORT_REFUSALS = MGL_OUTCOME_COUNT + 78, REPORT_REFUSAL_NAME = 32 };

/* The effect of a change, relative to the parent trial. */
typedef struct report_effect {
    char name[48];
    int64_t tried, refused, correct;
    double sum;                     /* sum of log ratios, over trials with a value */
    double best;                    /* largest log ratio */
    int64_t valued;                 /* trials with a value */
    char most[REPORT_REFUSAL_NAME]; /* most frequent failure; "": none */
    int64_t most_count;
    int64_t refusals[REPORT_REFUSALS]; /* count of each failure, in order of first appearance */
} report_effect;

/* An outcome with an example. */
typedef struct report_refusal {
    char name[REPORT_REFUSAL_NAME]; /* "NO_GAIN", "REJECTED MG202" */
    mgl_trial_verdict verdict;      /* verdict of the example */
    int64_t count, example;         /* `example`: number of the first such trial */
} report_refusal;

typedef struct report_proposer {
    char name[32];
    int64_t trials, kept;
    double seconds;
} report_proposer;

/* An event of the campaign. */
typedef struct report_event {
    int64_t unix_s;
    char kind[16], text[240];
} report_event;

enum { REPORT_EVENTS = 50 };

/* A kept trial that a final measurement found incorrect. */
enum { REPORT_QUARANTINED = 8 };
typedef struct report_quarantined {
    char line[2 * MGL_MAX_DIAGNOSTIC];
} report_quarantined;

enum { REPORT_EFFECTS = MGL_MAX_KNOBS + MGL_MOVE_COUNT, REPORT_PROPOSERS = 16 };

typedef struct report_facts {
    const mgl_campaign_record *campaign;
    bool measures;           /* the device has a clock; else all values are predictions */
    mgl_workloads workloads; /* count 0: could not be parsed */
    report_point *points;    /* (point_count) by trial number */
    size_t point_count, point_capacity;
    report_effect effects[REPORT_EFFECTS]; /* (effect_count) knobs, then moves */
    int effect_count, first_move;
    report_refusal refusals[REPORT_REFUSALS]; /* (refusal_count) by outcome, then by code */
    int refusal_count;
    report_proposer proposers[REPORT_PROPOSERS]; /* (proposer_count) */
    int proposer_count;
    mgl_trial best;              /* the incumbent without pairs; number 0: the default */
    mgl_answer_best_facts steps; /* keeps of the incumbent and their sum */
    mgl_answer_predicted
        predicted;       /* the trial with the lowest prediction, without the default's */
    report_plays plays;  /* timelines; start_us is the reference of predicted values */
    int64_t played_best; /* trial of the best timeline; 0: the default */
    /* ring buffer of the last events; event n is at n % REPORT_EVENTS */
    report_event events[REPORT_EVENTS];
    int64_t event_count; /* number of events that a report shows */
    int64_t trials, measured, kept, controls, bad_controls, dropped_pairs, pairs;
    double control_largest; /* largest |gain| of a control */
    double compile_s, gpu_s;
    int64_t requests, tokens; /* usage of the language model */
    mgl_answer_chat_facts chat;
    mgl_answer_final_facts final;
    report_quarantined quarantined[REPORT_QUARANTINED]; /* (quarantined_count) the first ones */
    int quarantined_count;
} report_facts;

/* Collects the facts. Release with report_facts_clear, also after a failure. */
mgl_status report_facts_gather(mgl_store *store, const mgl_campaign_record *campaign,
                               report_facts *out, mgl_error *err);
void report_facts_clear(report_facts *facts);

/* Writes a sentence about the incumbent's gain, from report_facts.final if it was measured. */
void report_put_best(const report_facts *facts, mgl_text *out);
/* Sentence on the bias of the sum of steps. */
extern const char report_of_steps[];

/* Percent faster, from a log ratio. */
double report_percent(double log_ratio);

/* Writes "batch 1, context 8192" for workload `w`, or its number. */
void report_put_workload(const report_facts *facts, int w, mgl_text *out);
/* Writes "7.5e-03"; "-" if nothing was compared. */
void report_put_error(double error, mgl_text *out);

/* Writes "2026-05-01 23:10" in UTC. */
void report_put_time(int64_t unix_s, mgl_text *out);
/* Writes a name as one quoted shell word. */
void report_put_quoted(const char *name, mgl_text *out);
/* Writes the incumbent's proposal in the form that `campaign submit` accepts. */
void report_print_best(const report_facts *facts, mgl_text *out);

/* A sentence about the weights that trials used. */
const char *report_weights(const report_facts *facts);
/* Whether there is a predicted winner instead of a measured one; and a sentence about its
 * export. */
bool report_has_prediction(const report_facts *facts);
extern const char report_of_prediction[];
/* Writes how a campaign that kept nothing can be repeated. */
void report_put_seed(const report_facts *facts, mgl_text *out);
/* Writes the time of compilation and launches; nothing if nothing was launched. */
void report_put_device_time(const report_facts *facts, mgl_text *out);

/* "2.3 h", "41 min", "12 s" */
void report_put_seconds(double seconds, mgl_text *out);

#endif
