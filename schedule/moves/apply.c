/*
 * Applies moves to a program, and finds the inverse of a move. An inverse is guessed from the
 * program and the move, and accepted only if applying it restores the digest of the original
 * program.
 */
#include "schedule/moves/edit.h"

#include <string.h>

#include "base/memory.h"
#include "schedule/variants.h"

typedef mgl_status move_fn(mgl_edit *e, const mgl_move *move);

static move_fn *const moves_of[MGL_MOVE_COUNT] = {
    [MGL_MOVE_QUEUES] = mgl_move_queues,   [MGL_MOVE_ROWS] = mgl_move_rows,
    [MGL_MOVE_SHIFT] = mgl_move_shift,     [MGL_MOVE_PLACE] = mgl_move_place,
    [MGL_MOVE_SPLITS] = mgl_move_splits,   [MGL_MOVE_SETS] = mgl_move_sets,
    [MGL_MOVE_COARSER] = mgl_move_coarser, [MGL_MOVE_FINER] = mgl_move_finer,
    [MGL_MOVE_COUNTED] = mgl_move_counted, [MGL_MOVE_FLAGGED] = mgl_move_flagged,
    [MGL_MOVE_CLEAR] = mgl_move_clear,     [MGL_MOVE_SAMPLE] = mgl_move_sample,
};

static mgl_status apply(mgl_edit *e, const mgl_move *move)
{
    mgl_text text = {0};
    mgl_move_print(move, &text);
    if (text.failed)
        return mgl_edit_no_memory(e);
    e->move = text.bytes;
    mgl_status status = moves_of[move->kind](e, move);
    if (!status && mgl_program_failed(e->p))
        status = mgl_edit_no_memory(e);
    e->move = "moves";
    mgl_text_clear(&text);
    return status;
}

/* Sets variants after moves. If the variants before were those that lowering chooses, lowering
 * chooses again. Otherwise tasks keep their variants if these still accept them. */
static void name_variants(const mgl_program *before, mgl_program *after)
{
    if (mgl_variants_are_chosen(before))
        mgl_variants_choose(after);
    else
        mgl_variants_mend(after);
}

mgl_status mgl_moves_apply(const mgl_program *program, const mgl_moves *moves, mgl_program **out,
                           mgl_error *err)
{
    mgl_edit e;
    *out = NULL;
    mgl_status status = mgl_edit_open(&e, program, err);
    for (int i = 0; i < moves->count && !status; i++)
        status = apply(&e, &moves->moves[i]);
    if (!status && moves->count > 0)
        status = mgl_edit_mend_ends(&e);
    if (!status)
        status = mgl_edit_build(&e, out);
    if (!status && moves->count > 0) {
        name_variants(program, *out);
        (*out)->tuned[0] = (*out)->tuned_digest[0] = 0; /* the program no longer matches the
                                                           entry */
    }
    mgl_edit_close(&e);
    return status;
}

/* ---- inverses -------------------------------------------------------------------------------- */

/* The queues over which a step, or attention and merges, was distributed before. */
static bool find_deal(mgl_edit *e, const mgl_move *move, mgl_move *back)
{
    const int layers = e->p->geometry.layers;
    const bool head = move->step == MGL_STEP_HEAD;
    const int layer = head ? layers : move->layer == MGL_MOVE_ALL ? 0 : move->layer;
    const int step = move->kind == MGL_MOVE_SPLITS ? MGL_STEP_ATTEND : move->step;
    return layer <= layers && mgl_edit_find_deal(e, layer, step, &back->from, &back->to);
}

static int first_layer(const mgl_move *move)
{
    return move->layer == MGL_MOVE_ALL ? 0 : move->layer;
}

/* Number of counters of the step before the move; 0 if unknown. */
static int count_counters(mgl_edit *e, const mgl_move *move)
{
    mgl_edit_list counters = {0};
    const bool head = move->step == MGL_STEP_HEAD;
    mgl_status status = mgl_edit_step_counters(e, head ? e->p->geometry.layers : first_layer(move),
                                               move->step, &counters);
    const int count = status ? 0 : (int)counters.count;
    mgl_free(counters.items);
    return count;
}

/* Guesses the inverse. False: there is none. */
static bool guess(mgl_edit *e, const mgl_move *move, mgl_move *back)
{
    int queue, buffer;
    *back = *move;
    switch (move->kind) {
    case MGL_MOVE_QUEUES:
        return find_deal(e, move, back);
    case MGL_MOVE_SPLITS:
        back->count = mgl_edit_splits(e, first_layer(move));
        return back->count > 0 && find_deal(e, move, back);
    case MGL_MOVE_ROWS:
    case MGL_MOVE_PLACE:
        back->from = move->to;
        back->to = move->from;
        return true;
    case MGL_MOVE_SHIFT:
    case MGL_MOVE_CLEAR:
        back->count = -move->count;
        return true;
    case MGL_MOVE_SETS:
        buffer = mgl_edit_flagged(e, first_layer(move), move->step);
        back->count = buffer < 0 ? 0 : e->p->buffers[buffer].sets;
        return buffer >= 0;
    case MGL_MOVE_COARSER:
        back->kind = MGL_MOVE_FINER;
        back->count = count_counters(e, move);
        return back->count > 1;
    case MGL_MOVE_FINER:
        back->kind = MGL_MOVE_COARSER;
        back->count = 0;
        return true;
    case MGL_MOVE_COUNTED:
    case MGL_MOVE_FLAGGED:
        back->kind = move->kind == MGL_MOVE_COUNTED ? MGL_MOVE_FLAGGED : MGL_MOVE_COUNTED;
        return true;
    case MGL_MOVE_SAMPLE:
        mgl_edit_find_sample(e, &queue);
        back->to = queue;
        return queue >= 0;
    case MGL_MOVE_COUNT:
        break;
    }
    return false;
}

/* Whether the move restores `before` from `after`. */
static mgl_status leads_back(const mgl_program *before, const mgl_program *after,
                             const mgl_move *back, bool *leads, mgl_error *err)
{
    mgl_move move = *back;
    const mgl_moves one = {&move, 1, 1};
    mgl_program *again;
    unsigned char a[MGL_SHA256_BYTES], b[MGL_SHA256_BYTES];
    mgl_status status = mgl_moves_apply(after, &one, &again, err);
    *leads = false;
    if (status)
        return status == MGL_BAD_INPUT ? MGL_OK : status;
    status = mgl_program_digest(before, a, err);
    if (!status)
        status = mgl_program_digest(again, b, err);
    *leads = !status && !memcmp(a, b, sizeof a);
    mgl_program_free(again);
    return status;
}

static mgl_status find_back(const mgl_program *before, const mgl_program *after,
                            const mgl_move *move, mgl_move *back, bool *leads, mgl_error *err)
{
    mgl_edit e;
    *leads = false;
    mgl_status status = mgl_edit_open(&e, before, err);
    const bool guessed = !status && guess(&e, move, back);
    mgl_edit_close(&e);
    return guessed ? leads_back(before, after, back, leads, err) : status;
}

mgl_status mgl_move_invert(const mgl_program *before, const mgl_move *move, mgl_moves *out,
                           mgl_error *err)
{
    mgl_move copy = *move, back;
    const mgl_moves one = {&copy, 1, 1};
    mgl_program *after;
    bool leads;
    *out = (mgl_moves){0};
    mgl_status status = mgl_moves_apply(before, &one, &after, err);
    if (status)
        return status;
    status = find_back(before, after, move, &back, &leads, err);
    mgl_program_free(after);
    if (status)
        return status;
    return leads ? mgl_moves_add(out, &back, err)
                 : mgl_fail(err, MGL_BAD_INPUT, mgl_move_name(move->kind),
                            "no single move leads back to the program from before");
}
