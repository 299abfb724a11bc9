/*
 * Moves: small edits of a program that lowering cannot express. Only the validator decides whether
 * the result is correct. A move names layer, step and queues, never lines or indices, so that it
 * means the same in every program of the shape. schedule/moves/moves.def lists the kinds.
 *
 *     rows layer=3 step=o from=12 to=13 count=1
 *
 * A move is one line of text. A list of moves is applied in order to a lowered program. A move that
 * does not fit the program is rejected with MGL_BAD_INPUT and the reason. A move that fits may
 * still make a program that the validator rejects; this is intended. Callers: campaigns (autotune),
 * tuned entries and cli.
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
    int layer;    /* or MGL_MOVE_ALL; 0 if the kind has no layer */
    int step;     /* mgl_step, or MGL_MOVE_STEP_MERGE; 0 if the kind has no step */
    int from, to; /* queues; 0 if the kind has none */
    int count;    /* 0 if the kind has no count */
} mgl_move;

/* An owned list: zero-initialize, release with mgl_moves_clear. */
typedef struct mgl_moves {
    mgl_move *moves; /* (count) */
    int count, capacity;
} mgl_moves;
void mgl_moves_clear(mgl_moves *moves);
mgl_status mgl_moves_add(mgl_moves *moves, const mgl_move *move, mgl_error *err);

/* One move a line, canonical when printed; `#` starts a comment. At most MGL_MAX_MOVES. Errors
 * contain file:line:column. */
mgl_status mgl_moves_parse(const char *text, size_t length, const char *file, mgl_moves *out,
                           mgl_error *err);
void mgl_moves_print(const mgl_moves *moves, mgl_text *out);
void mgl_move_print(const mgl_move *move, mgl_text *out); /* without a newline */
const char *mgl_move_name(mgl_move_kind kind);
const char *mgl_move_what(mgl_move_kind kind); /* description: one sentence */
/* Appends the syntax: "rows layer=N|all step=STEP from=N to=N count=N". */
void mgl_move_print_usage(mgl_move_kind kind, mgl_text *out);

/* A copy of the program with the moves applied in order. MGL_BAD_INPUT, naming the move, if a
 * move does not fit. The result is not validated. */
mgl_status mgl_moves_apply(const mgl_program *program, const mgl_moves *moves, mgl_program **out,
                           mgl_error *err);

/* Draws a random move that fits the program's shape, from the generator state *state, which
 * advances. Only kinds with their bit (1 << kind) in `kinds` are drawn. False: no move fits.
 * Equal states give equal moves. */
bool mgl_move_draw(const mgl_program *program, unsigned kinds, uint64_t *state, mgl_move *out);

#endif
