/*
 * The numbers of a ScheduleConfig as a table: the knobs of config.def, then `first` and `count` of
 * the queue range of each step. Code that reads, checks, searches or describes configs uses this
 * table.
 */
#ifndef MGL_SCHEDULE_KNOBS_H
#define MGL_SCHEDULE_KNOBS_H

#include "schedule/schedule.h"

typedef struct mgl_knob_row {
    const char *name;    /* "page_bytes", "queues.qkv.first" */
    const char *what;    /* description: one phrase */
    bool open;           /* 0 is allowed too, and means that lowering chooses */
    bool changes_format; /* changes a number format */
    int lowest, highest, multiple, preset;
    size_t field; /* offset of the int in mgl_schedule_config */
} mgl_knob_row;

enum {
    MGL_PLAIN_KNOBS = 0 /* rows of config.def other than queue ranges; they come first */
#define MGL_KNOB(field, open, lowest, highest, multiple, preset, what) +1
#define MGL_KNOB_STEP(id, key, what)
#include "schedule/config.def"
#undef MGL_KNOB
#undef MGL_KNOB_STEP
    ,
    MGL_KNOB_ROWS = MGL_PLAIN_KNOBS + 2 * MGL_STEP_COUNT
};

/* The row of a knob: 0 to MGL_KNOB_ROWS - 1. */
const mgl_knob_row *mgl_knob_row_get(int knob);
/* The knobs `first` and `count` of a step's queue range. */
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

/* Whether a single knob may have the value, ignoring other knobs. MGL_BAD_INPUT, located at
 * `where`, with the allowed values in the message. */
mgl_status mgl_knob_check(int knob, int64_t value, const char *where, mgl_error *err);

#endif
