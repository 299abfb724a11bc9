/*
 * Common parts of the tools that run campaigns: fatal errors, and running a campaign on a device or
 * on a runner that simulates one with the cost model's times.
 */
#ifndef MGL_TESTS_TOOLS_SHOW_H
#define MGL_TESTS_TOOLS_SHOW_H

#include "autotune/tune.h"
#include "base/json_out.h"

extern const char *show_name;   /* name of the tool */
extern const char *show_commit; /* value of --commit, stored in trials; NULL: not given */

/* Exits with the error's message. */
void show_check(mgl_status status, const mgl_error *err);
/* Prints a line on standard error, with the seconds since the first one. */
void show_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef struct show_limits {
    double seconds; /* limit for the whole campaign; 0: no limit */
    int64_t trials; /* likewise */
    double gain;    /* as in mgl_campaign_options */
    bool simulated; /* the runner */
} show_limits;
/* Runs a campaign until one of its limits. Prints keeps, errors, and every fiftieth trial. */
mgl_status show_run(mgl_tune *tune, const show_limits *limits, mgl_error *err);

/* Where the time of a campaign's runs went, by its events (MGL_SPENT_EVENT). */
enum { SHOW_STRETCHES, SHOW_REQUESTS, SHOW_DEVICE, SHOW_PARTS, SHOW_MOST_SPENT = 64 };
typedef struct show_spent {
    double seconds; /* seconds of the runs */
    int count;
    struct {
        int part;
        char name[24];
        double seconds;
    } list[SHOW_MOST_SPENT]; /* (count) */
} show_spent;

/* Counts of a campaign's trials by outcome. Controls are counted separately. */
typedef struct show_counts {
    int64_t trials, measured; /* measured: pairs were taken */
    int64_t configs;          /* measured trials without moves */
    int64_t moved, moves;     /* measured trials with moves, and all their moves */
    int64_t kept, suspicious, refused;
    double gain, gain_lo, gain_hi; /* log ratios: sums over kept trials */
    double seconds, device_s;      /* seconds of trials and controls */
    int controls, bad_controls;
    double control_gain[1001], control_width[1001]; /* (controls) log ratios, the first 1001 */
    show_spent spent;
} show_counts;
void show_count(mgl_store *store, const mgl_campaign_record *campaign, show_counts *out);

/* Median, p10 and p90 of log ratios as percent: an object. */
void show_put_percent(mgl_json_out *out, const char *key, const double *values, int count);
/* Prints the seconds of trials on the device, their share of the campaign's time, the share without
 * starts, and where the time went, by part and name. */
void show_put_spent(mgl_json_out *out, const show_counts *counts, double seconds);
/* Closes and prints the JSON object. */
void show_end_json(mgl_json_out *out);

#endif
