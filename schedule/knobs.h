/*
 * The numbers of a ScheduleConfig as a table: the knobs of config.def, then first and count of
 * the run of queues of each step. Who reads, checks, searches or describes configs goes through
 * it.
 */
#ifndef MGL_SCHEDULE_KNOBS_H
#define MGL_SCHEDULE_KNOBS_H

#include "schedule/schedule.h"

typedef struct mgl_knob_row {
    const char *name; /* "page_bytes", "queues.qkv.first" */
    const char *what; /* what it is: one phrase */
    bool open;        /* 0 is allowed too */
    bool narrow;      /* changes a number format */
    int lowest, highest, multiple, preset;
    size_t field; /* offset of the int in mgl_schedule_config */
} mgl_knob_row;

enum {
    MGL_PLAIN_KNOBS = 0 /* rows of config.def that are no runs of queues; they stand first */
#define MGL_KNOB(field, open, lowest, highest, multiple, preset, what) +1
#define MGL_KNOB_STEP(id, key, what)
#include "schedule/config.def"
#undef MGL_KNOB
#undef MGL_KNOB_STEP
    ,
    MGL_KNOB_ROWS = MGL_PLAIN_KNOBS + 2 * MGL_STEP_COUNT
};

/* The row of a number of a config: 0 to MGL_KNOB_ROWS - 1. */
const mgl_knob_row *mgl_knob_row_get(int knob);
/* The rows of the first of a step's queues, and of their count. */
static inline int mgl_knob_first(mgl_step step)
{
    return MGL_PLAIN_KNOBS + 2 * (int)step;
}
static inline int mgl_knob_run(mgl_step step)
{
    return MGL_PLAIN_KNOBS + 2 * (int)step + 1;
}

int mgl_knob_count(void); /* MGL_KNOB_ROWS */
const char *mgl_knob_name(int knob);
int mgl_knob_find(const char *name); /* -1: no such knob */
int mgl_knob_get(const mgl_schedule_config *config, int knob);
void mgl_knob_set(mgl_schedule_config *config, int knob, int value);

/* Whether the knob may have the value, for itself. MGL_BAD_INPUT, with `where`, says what it
 * may have. */
mgl_status mgl_knob_check(int knob, int64_t value, const char *where, mgl_error *err);

#endif
