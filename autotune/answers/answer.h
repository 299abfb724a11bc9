/*
 * Campaigns and trials as JSON members and as text lines. The keys are the same in the command
 * line, in events and in agent answers. Text from outside appears only as JSON strings. Called by
 * the commands, the agents' server, the archive code and the reports.
 */
#ifndef MGL_AUTOTUNE_ANSWERS_ANSWER_H
#define MGL_AUTOTUNE_ANSWERS_ANSWER_H

#include "autotune/candidates/gate.h"
#include "autotune/runner/real.h"
#include "autotune/store/store.h"
#include "base/json_out.h"
#include "validator/validator.h"

/* Write members of the open object. Gains are shares: 0.031 means 3.1 % faster. */
void mgl_answer_campaign(mgl_json_out *out, const mgl_campaign_record *campaign);
void mgl_answer_trial(mgl_json_out *out, const mgl_trial *trial);

/* Writes "proposal": the object that `campaign submit` accepts. `proposal` is of a trial. */
mgl_status mgl_answer_proposal(mgl_json_out *out, const mgl_proposal *proposal, mgl_error *err);

/* "outcomes": the number of trials with each outcome, and sums by group. */
typedef struct mgl_answer_counts {
    int64_t of[MGL_OUTCOME_COUNT];
    int64_t kept, not_kept, refused, incorrect, unmeasured;
    int64_t duplicates, unreadable; /* trials with outcome DUPLICATE and PARSE; not included in
                                     * `refused` */
} mgl_answer_counts;
mgl_status mgl_answer_count(mgl_store *store, int64_t campaign, mgl_answer_counts *out,
                            mgl_error *err);
void mgl_answer_outcomes(mgl_json_out *out, const mgl_answer_counts *counts);

/* Requests to a language model and their outcomes. requests 0: no model was used. */
typedef struct mgl_answer_chat_facts {
    int64_t requests, tokens;
    int64_t of[MGL_OUTCOME_COUNT];
    int64_t failed;   /* requests that the endpoint did not answer successfully */
    mgl_outcome most; /* most frequent outcome of the failed requests */
} mgl_answer_chat_facts;
mgl_status mgl_answer_count_chat(mgl_store *store, int64_t campaign, mgl_answer_chat_facts *out,
                                 mgl_error *err);
/* Writes "chat", or null if no model was used. The line form is "6 times, 12345 tokens: 5 OK". */
mgl_status mgl_answer_chat(mgl_json_out *out, mgl_store *store, int64_t campaign, mgl_error *err);
void mgl_answer_chat_line(const mgl_answer_chat_facts *facts, mgl_text *out);

/* A gain of the final measurement over the default, as shares, and times in us. */
typedef struct mgl_answer_gain {
    double gain, lo, hi, us, default_us;
} mgl_answer_gain;
typedef struct mgl_answer_final_facts {
    int64_t number; /* number of the winner; 0: not measured yet */
    mgl_trial_verdict verdict;
    mgl_answer_gain all;
    mgl_answer_gain each[MGL_MAX_WORKLOADS]; /* (workload_count) */
    int workload_count;
    /* (workload_count) the cuBLAS graph baseline; 0: not measured */
    double cublas_us[MGL_MAX_WORKLOADS];
    char no_cublas[MGL_MAX_DIAGNOSTIC + 1]; /* why the baseline was not measured; "": no failure */
    mgl_real_facts real;                    /* results on the real checkpoint */
} mgl_answer_final_facts;
#define MGL_FINAL_EVENT "final" /* kind of the event; its text is JSON of megalith.final/1 */
mgl_status mgl_answer_find_final(mgl_store *store, int64_t campaign, mgl_answer_final_facts *out,
                                 mgl_error *err);
/* Whether the final measurement found the winner incorrect. */
bool mgl_answer_is_wrong(const mgl_answer_final_facts *facts);
/* MGL_GATE: the final measurement found the winner incorrect, and no earlier kept trial replaced
 * it, so the campaign has no usable winner. */
mgl_status mgl_answer_check_final(mgl_store *store, const mgl_campaign_record *campaign,
                                  mgl_error *err);
/* Writes "final", or null; and the line form. */
mgl_status mgl_answer_final(mgl_json_out *out, mgl_store *store, int64_t campaign, mgl_error *err);
void mgl_answer_final_line(const mgl_answer_final_facts *facts, mgl_text *out);

/* Kind of the event that reports a quarantine. Its old name is in base/aliases.def. */
#define MGL_QUARANTINED_EVENT "quarantined"
/* Writes "condemned": the incumbents that final measurements found incorrect. The second function
 * writes one of them as a text line. */
mgl_status mgl_answer_quarantined(mgl_json_out *out, mgl_store *store, int64_t campaign,
                                  mgl_error *err);
void mgl_answer_quarantined_line(const mgl_trial *trial, mgl_text *out);

/* Writes a JSON text as a member, without its line ends. */
void mgl_answer_json(mgl_json_out *out, const char *key, const char *json);

/* The incumbent and its gain over the default. Each kept trial was measured against the incumbent
 * before it, so the gain is the sum of the log gains of all kept trials. number 0: the default is
 * the incumbent. */
typedef struct mgl_answer_best_facts {
    int64_t number; /* number of the trial */
    double gain;    /* 0.031: 3.1 % faster */
    int keeps;
    double log_gain, log_lo, log_hi; /* sums of the log gains and of their interval ends */
} mgl_answer_best_facts;
mgl_status mgl_answer_find_best(mgl_store *store, const mgl_campaign_record *campaign,
                                mgl_answer_best_facts *out, mgl_error *err);
/* Whether `final` is a correct measurement of that trial against the default. Otherwise the gain
 * over the default is only the sum of the steps. That sum tends to be too large (selection bias),
 * because a step is kept only if its measured gain is high. */
bool mgl_answer_is_final_of(const mgl_answer_final_facts *final, int64_t number);
/* Writes the line about the incumbent's gain: the final measurement, or a note that it is missing,
 * and the sum of the steps. `best->number` is not 0. */
void mgl_answer_best_line(const mgl_answer_best_facts *best, const mgl_answer_final_facts *final,
                          mgl_text *out);

/* The number of the first of the campaign's last `count` trials. */
int64_t mgl_answer_last(const mgl_campaign_record *campaign, int64_t count);

/* Writes "best": the incumbent with its proposal, or null if the default is the best.
 * "gain_over_default" is the sum of its steps; "measured_gain_over_default" is the final
 * measurement {"gain", "gain_lo", "gain_hi"}, or null. */
mgl_status mgl_answer_best(mgl_json_out *out, mgl_store *store, const mgl_campaign_record *campaign,
                           mgl_error *err);

/* The winner of a campaign whose device has no clock, predicted by the cost model and not
 * measured. */
typedef struct mgl_answer_predicted {
    int64_t number;        /* number of the trial; 0: the default, or a campaign with a clock */
    double us, default_us; /* objectives for the same workloads; 0: unknown */
    mgl_workloads workloads;
    double each[MGL_MAX_WORKLOADS], default_each[MGL_MAX_WORKLOADS]; /* (workloads.count) us */
} mgl_answer_predicted;
bool mgl_answer_has_clock(const mgl_campaign_record *campaign);
/* Makes a trial the winner if it may win and its prediction is the lowest so far. */
void mgl_answer_note_predicted(mgl_answer_predicted *out, const mgl_trial *trial);
/* Whether a trial has a prediction and is correct or UNMEASURED. */
bool mgl_answer_may_win(const mgl_trial *trial);
/* Predicts only the default. */
mgl_status mgl_answer_predict_default(const mgl_subject *subject, mgl_answer_predicted *out,
                                      mgl_error *err);
mgl_status mgl_answer_find_predicted(mgl_store *store, const mgl_campaign_record *campaign,
                                     mgl_answer_predicted *out, mgl_error *err);
/* Writes "predicted_best": as "best", with "predicted": true; or null. And the line form. */
mgl_status mgl_answer_put_predicted(mgl_json_out *out, mgl_store *store,
                                    const mgl_campaign_record *campaign, mgl_error *err);
void mgl_answer_predicted_line(const mgl_answer_predicted *best, mgl_text *out);
/* Writes the information that an external proposer needs: the space, the best, the last verdicts,
 * and how to submit. */
mgl_status mgl_answer_next(mgl_json_out *out, mgl_store *store, const mgl_campaign_record *campaign,
                           mgl_error *err);

/* Writes the member "formats": number formats. */
void mgl_answer_formats(mgl_json_out *out, const mgl_formats *formats);
/* Writes the validator's verdict: members "verdict", "meaning", "diagnostics", "formats" and
 * "stats". */
void mgl_answer_verdict(mgl_json_out *out, const mgl_verdict *verdict);

/* Writes a line such as "12 NO_GAIN evolve +0.31 % (-0.12 to +0.70)". */
void mgl_answer_line(const mgl_trial *trial, mgl_text *out);

#endif
