/*
 * Moves: small edits of a program that lowering can not express, judged by the validator alone. A
 * move names layer, step and queues, never lines or indices, so that it means the same in every
 * program of the shape. One list: schedule/moves/moves.def.
 *
 *     rows layer=3 step=o from=12 to=13 count=1
 *
 * Moves are texts of one line each, and compose: a list of them is applied in order to what
 * lowering made. A move that does not fit the program is refused with the reason; one that fits
 * may still make a program that the validator rejects, which is how it is meant.
 */
#ifndef MGL_SCHEDULE_MOVES_MOVES_H
#define MGL_SCHEDULE_MOVES_MOVES_H

#include "base/sha256.h"
#include "schedule/schedule.h"

typedef enum mgl_move_kind {
#define MGL_MOVE(id, name, parameters, what) MGL_MOVE_##id,
#include "schedule/moves/moves.def"
#undef MGL_MOVE
    MGL_MOVE_COUNT
} mgl_move_kind;

enum { MGL_MOVE_ALL = -1, MGL_MAX_MOVES = 256, MGL_MOVE_STEP_MERGE = MGL_STEP_COUNT };

typedef struct mgl_move {
    mgl_move_kind kind;
    int layer;    /* or MGL_MOVE_ALL; 0 where the kind has none */
    int step;     /* mgl_step, or MGL_MOVE_STEP_MERGE; 0 where the kind has none */
    int from, to; /* queues; 0 where the kind has none */
    int count;    /* 0 where the kind has none */
} mgl_move;

/* A list, owned; zero-initialise, release with mgl_moves_clear. */
typedef struct mgl_moves {
    mgl_move *moves; /* (count) */
    int count, capacity;
} mgl_moves;
void mgl_moves_clear(mgl_moves *moves);
mgl_status mgl_moves_add(mgl_moves *moves, const mgl_move *move, mgl_error *err);

/* One move a line, canonical when printed; `#` begins a comment. Errors carry file:line:column. At
 * most MGL_MAX_MOVES. */
mgl_status mgl_moves_parse(const char *text, size_t length, const char *file, mgl_moves *out,
                           mgl_error *err);
void mgl_moves_print(const mgl_moves *moves, mgl_text *out);
void mgl_move_print(const mgl_move *move, mgl_text *out); /* without a line end */
const char *mgl_move_name(mgl_move_kind kind);
const char *mgl_move_what(mgl_move_kind kind); /* what it does: one sentence */
/* How one is written: "rows layer=N|all step=STEP from=N to=N count=N". */
void mgl_move_print_usage(mgl_move_kind kind, mgl_text *out);

/* The program with the moves applied, in order; `program` stays as it is. MGL_BAD_INPUT, with the
 * move, where one does not fit. The result was not validated. */
mgl_status mgl_moves_apply(const mgl_program *program, const mgl_moves *moves, mgl_program **out,
                           mgl_error *err);

/* The move that takes this one back, given the program before it: applying both gives that program
 * (mgl_program_equal up to names). MGL_BAD_INPUT where the move does not fit, and where no single
 * move leads back: a step that was not dealt evenly can not be dealt so again. *out is new. */
mgl_status mgl_move_invert(const mgl_program *before, const mgl_move *move, mgl_moves *out,
                           mgl_error *err);

/* A move that fits the program's shape, drawn with the bits of *state (which moves on); kinds
 * whose bit is not set in `kinds` (1 << kind) are left out. False: none fits. Equal state, equal
 * move. */
bool mgl_move_draw(const mgl_program *program, unsigned kinds, uint64_t *state, mgl_move *out);

/* The SHA-256 of what the program is: its canonical form without names and comments, so that equal
 * programs under other names are one. */
mgl_status mgl_program_digest(const mgl_program *program, unsigned char out[MGL_SHA256_BYTES],
                              mgl_error *err);

/* The SHA-256 of where the weights lie: the same for programs whose packed weights are the same
 * bytes in the same places, whatever they do with them. */
void mgl_program_layout(const mgl_program *program, unsigned char out[MGL_SHA256_BYTES]);

#endif
