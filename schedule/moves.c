/* Moves: their texts. What they do to a program stands in moves_*.c. */
#include "schedule/moves.h"

#include "base/memory.h"

void mgl_moves_clear(mgl_moves *moves)
{
    mgl_free(moves->moves);
    *moves = (mgl_moves){0};
}
