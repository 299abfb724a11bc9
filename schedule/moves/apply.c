/* Applies moves to a copy of a program: each move by its function, then variants and ends. */
#include "schedule/moves/edit.h"

#include <string.h>

#include "base/memory.h"
#include "schedule/digest.h"
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
