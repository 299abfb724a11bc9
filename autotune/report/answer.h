/*
 * What is told of campaigns and trials as JSON: the same keys wherever they are told, by the
 * command line, by events, and to agents. Texts from outside are strings in it, and nothing else.
 */
#ifndef MGL_AUTOTUNE_REPORT_ANSWER_H
#define MGL_AUTOTUNE_REPORT_ANSWER_H

#include "autotune/runner/real.h"
#include "autotune/search/gate.h"
#include "autotune/store/store.h"
#include "base/json_out.h"
#include "validator/validator.h"

/* Members of the object that is open. Gains are shares: 0.031 is 3.1 % faster. */
void mgl_answer_campaign(mgl_json_out *out, const mgl_campaign_record *campaign);
void mgl_answer_trial(mgl_json_out *out, const mgl_trial *trial);

/* "proposal": the object that `campaign submit` takes, of a trial; NULL: of the default. */
mgl_status mgl_answer_proposal(mgl_json_out *out, const mgl_proposal *proposal, mgl_error *err);

/* "outcomes": how many trials have each; and how they add up. */
typedef struct mgl_answer_counts {
    int64_t of[MGL_OUTCOME_COUNT];
    int64_t kept, not_kept, refused, incorrect, unmeasured;
    int64_t duplicates, unreadable; /* which are none of the refused */
} mgl_answer_counts;
mgl_status mgl_answer_count(mgl_store *store, int64_t campaign, mgl_answer_counts *out,
                            mgl_error *err);
void mgl_answer_outcomes(mgl_json_out *out, const mgl_answer_counts *counts);

/* What a language model was asked, and how the exchanges ended. requests 0: none was. */
typedef struct mgl_answer_chat_facts {
    int64_t requests, tokens;
    int64_t of[MGL_OUTCOME_COUNT];
    int64_t failed;   /* that the endpoint gave no answer to */
    mgl_outcome most; /* as most of these ended */
} mgl_answer_chat_facts;
mgl_status mgl_answer_count_chat(mgl_store *store, int64_t campaign, mgl_answer_chat_facts *out,
                                 mgl_error *err);
/* "chat", or null where none was asked; and the same as a line: "6 times, 12345 tokens: 5 OK". */
mgl_status mgl_answer_chat(mgl_json_out *out, mgl_store *store, int64_t campaign, mgl_error *err);
void mgl_answer_chat_line(const mgl_answer_chat_facts *facts, mgl_text *out);

/* What the winner was measured to be against the default at the end of a campaign: shares, and us.
 */
typedef struct mgl_answer_gain {
    double gain, lo, hi, us, default_us;
} mgl_answer_gain;
typedef struct mgl_answer_final_facts {
    int64_t number; /* of the winner; 0: it was not measured yet */
    mgl_outcome outcome;
    char diagnostic[MGL_MAX_DIAGNOSTIC + 1];
    mgl_answer_gain all;
    mgl_answer_gain each[MGL_MAX_WORKLOADS]; /* (workload_count) */
    int workload_count;
    double cublas_us[MGL_MAX_WORKLOADS];    /* (workload_count) of bench's baseline; 0: none */
    char no_cublas[MGL_MAX_DIAGNOSTIC + 1]; /* why; "": nobody asked */
    mgl_real_facts real;                    /* both on the real checkpoint */
} mgl_answer_final_facts;
#define MGL_FINAL_EVENT "final" /* kind of the event, whose text is JSON of megalith.final/1 */
mgl_status mgl_answer_find_final(mgl_store *store, int64_t campaign, mgl_answer_final_facts *out,
                                 mgl_error *err);
/* Its verdict is that the winner is wrong, and no winner then. */
bool mgl_answer_is_wrong(const mgl_answer_final_facts *facts);
/* MGL_GATE where the campaign's winner was found wrong at its end, and nothing that was kept before
 * took its place: it is for nobody to use. */
mgl_status mgl_answer_check_final(mgl_store *store, const mgl_campaign_record *campaign,
                                  mgl_error *err);
/* "final", or null; and the same as a line. */
mgl_status mgl_answer_final(mgl_json_out *out, mgl_store *store, int64_t campaign, mgl_error *err);
void mgl_answer_final_line(const mgl_answer_final_facts *facts, mgl_text *out);

#define MGL_QUARANTINED_EVENT "condemned" /* kind of the event that tells of one */
/* "condemned": the incumbents that were found wrong at an end; and one of them as a line. */
mgl_status mgl_answer_quarantined(mgl_json_out *out, mgl_store *store, int64_t campaign,
                                  mgl_error *err);
void mgl_answer_quarantined_line(const mgl_trial *trial, mgl_text *out);

/* A text that is JSON already, as a member; on one line, as the whole answer is. */
void mgl_answer_json(mgl_json_out *out, const char *key, const char *json);

/* The incumbent, and what it gained over the default: what was kept adds up, since each was
 * measured against the one before. number 0: the default. */
typedef struct mgl_answer_best_facts {
    int64_t number; /* of the trial */
    double gain;    /* 0.031: 3.1 % faster */
    int keeps;
    double log_gain, log_lo, log_hi; /* logarithms, and the ends of the intervals, added up */
} mgl_answer_best_facts;
mgl_status mgl_answer_find_best(mgl_store *store, const mgl_campaign_record *campaign,
                                mgl_answer_best_facts *out, mgl_error *err);
/* Whether `final` measured that trial against the default. Any other gain over the default is a sum
 * of steps: each was kept because it measured well, so that the sum is more than the truth. */
bool mgl_answer_is_final_of(const mgl_answer_final_facts *final, int64_t number);
/* What the incumbent gained, as people read it first: as measured at the end, or that it was not
 * measured as a whole; and what its steps add up to. `best->number` is not 0. */
void mgl_answer_best_line(const mgl_answer_best_facts *best, const mgl_answer_final_facts *final,
                          mgl_text *out);

/* Number of the trial that the last `count` of the campaign begin with. */
int64_t mgl_answer_last(const mgl_campaign_record *campaign, int64_t count);

/* "best": the incumbent with its proposal, or null where the default is the best.
 * "gain_over_default" is the sum of its steps; "measured_gain_over_default" is what was measured at
 * the end, as {"gain", "gain_lo", "gain_hi"}, or null. */
mgl_status mgl_answer_best(mgl_json_out *out, mgl_store *store, const mgl_campaign_record *campaign,
                           mgl_error *err);

/* The winner of a campaign whose device has no clock: predicted by the cost model, not measured. */
typedef struct mgl_answer_predicted {
    int64_t number;        /* of the trial; 0: the default, or a campaign with a clock */
    double us, default_us; /* objectives, of the same workloads; 0: not known */
    mgl_workloads workloads;
    double each[MGL_MAX_WORKLOADS], default_each[MGL_MAX_WORKLOADS]; /* (workloads.count) us */
} mgl_answer_predicted;
bool mgl_answer_has_clock(const mgl_campaign_record *campaign);
/* Whether a trial is correct as far as it was tried, and has a prediction. */
bool mgl_answer_may_win(const mgl_trial *trial);
/* Of the default alone. */
mgl_status mgl_answer_predict_default(const mgl_subject *subject, mgl_answer_predicted *out,
                                      mgl_error *err);
mgl_status mgl_answer_find_predicted(mgl_store *store, const mgl_campaign_record *campaign,
                                     mgl_answer_predicted *out, mgl_error *err);
/* "predicted_best": as "best", with "predicted": true; or null. And as a line. */
mgl_status mgl_answer_put_predicted(mgl_json_out *out, mgl_store *store,
                                    const mgl_campaign_record *campaign, mgl_error *err);
void mgl_answer_predicted_line(const mgl_answer_predicted *best, mgl_text *out);
/* What a proposer from outside needs to know, as members: the space, the best, the last verdicts,
 * and how to hand in. */
mgl_status mgl_answer_next(mgl_json_out *out, mgl_store *store, const mgl_campaign_record *campaign,
                           mgl_error *err);

/* Number formats: member "formats". */
void mgl_answer_formats(mgl_json_out *out, const mgl_formats *formats);
/* What the validator found: members "verdict", "meaning", "diagnostics", "formats" and "stats". */
void mgl_answer_verdict(mgl_json_out *out, const mgl_verdict *verdict);

/* A line for people: "12 NO_GAIN evolve +0.31 % (-0.12 to +0.70)". */
void mgl_answer_line(const mgl_trial *trial, mgl_text *out);

#endif
