/*
 * The space that a campaign searches: which values the knobs of schedule/config.def may take,
 * and which moves may be made. The default has the knobs that change no number format, at a
 * handful of values each, and every move.
 *
 *     {"schema": "megalith.space/1",
 *      "knobs": {"page_bytes": [8192, 16384], "queues.qkv.count": [0, 64]},
 *      "moves": ["rows", "queues"]}
 */
#ifndef MGL_AUTOTUNE_SEARCH_SPACE_H
#define MGL_AUTOTUNE_SEARCH_SPACE_H

#include "schedule/knobs.h"
#include "schedule/moves/moves.h"

enum { MGL_MAX_KNOBS = 32, MGL_MAX_KNOB_VALUES = 64 };

typedef struct mgl_knob {
    const char *name;                /* "page_bytes", "queues.qkv.first" */
    int values[MGL_MAX_KNOB_VALUES]; /* (count), ascending */
    int count;
    bool narrow; /* changes a number format: needs leave */
} mgl_knob;

typedef struct mgl_search_space {
    mgl_knob knobs[MGL_MAX_KNOBS]; /* (count) that may change */
    int count;
    unsigned moves; /* bits: 1 << mgl_move_kind */
} mgl_search_space;

/* For a target of so many queues; with `narrow`, number formats too. */
void mgl_search_space_default(const mgl_target *target, bool narrow, mgl_search_space *out);
/* Makes room for a config that another space held: a knob that the space leaves out, and that is
 * not as in `start`, may be either. One that changes a number format stays out. */
void mgl_search_space_admit(const mgl_schedule_config *config, const mgl_schedule_config *start,
                            mgl_search_space *space);
/* What the text leaves out, its knobs or its moves, is as in the default. Values may stand in
 * any order. A knob that is not known, stands twice, has no values, more than
 * MGL_MAX_KNOB_VALUES or one twice, is MGL_BAD_INPUT. A knob that changes a number format
 * without `narrow` is, too, like a value out of its range or beyond the target's queues. */
mgl_status mgl_search_space_parse(const char *text, size_t length, const char *file,
                                  const mgl_target *target, bool narrow, mgl_search_space *out,
                                  mgl_error *err);
void mgl_search_space_print(const mgl_search_space *space, mgl_text *out); /* JSON, a line */

#endif
