/*
 * The search space of a campaign: the values that the knobs of schedule/config.def may have, and
 * the permitted moves. The default space contains every knob that changes no number format, with a
 * few values each, and every move. JSON form:
 *
 *     {"schema": "megalith.space/1",
 *      "knobs": {"page_bytes": [8192, 16384], "queues.qkv.count": [0, 64]},
 *      "moves": ["rows", "queues"]}
 *
 * Called by tune.c; read by the gates and the proposers.
 */
#ifndef MGL_AUTOTUNE_CANDIDATES_SPACE_H
#define MGL_AUTOTUNE_CANDIDATES_SPACE_H

#include "schedule/knobs.h"
#include "schedule/moves/moves.h"

enum { MGL_MAX_KNOBS = 32, MGL_MAX_KNOB_VALUES = 64 };

typedef struct mgl_knob {
    const char *name;                /* "page_bytes", "queues.qkv.first" */
    int values[MGL_MAX_KNOB_VALUES]; /* (count), ascending */
    int count;
    bool changes_format; /* changes a number format: requires --allow-formats */
} mgl_knob;

typedef struct mgl_search_space {
    mgl_knob knobs[MGL_MAX_KNOBS]; /* (count) that may change */
    int count;
    unsigned moves; /* bits: 1 << mgl_move_kind */
} mgl_search_space;

/* The default space for a target with its number of queues. `changes_format`: include number
 * formats. */
void mgl_search_space_default(const mgl_target *target, bool changes_format, mgl_search_space *out);
/* Extends the space so that a config from another space is inside. A knob that is not in the
 * space and differs from `start` may then have either value. Knobs that change a number format
 * stay out. */
void mgl_search_space_admit(const mgl_schedule_config *config, const mgl_schedule_config *start,
                            mgl_search_space *space);
/* Parses a space. Missing parts (knobs or moves) are those of the default. Values may be in any
 * order. MGL_BAD_INPUT: a knob is unknown or appears twice, has no values, more than
 * MGL_MAX_KNOB_VALUES or a double value; a knob changes a number format without `changes_format`; a
 * value is out of range or beyond the target's queues. */
mgl_status mgl_search_space_parse(const char *text, size_t length, const char *file,
                                  const mgl_target *target, bool changes_format,
                                  mgl_search_space *out, mgl_error *err);
void mgl_search_space_print(const mgl_search_space *space, mgl_text *out); /* one line of JSON */

#endif
