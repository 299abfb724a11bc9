/* Reference of enter: copies control and the row table for the queue. */
#include "instructions/reference/reference.h"

#include <string.h>

void mgl_reference_enter(const mgl_call *call)
{
    const int32_t *control = mgl_call_at(call, MGL_CALL(call, enter, control));
    const int32_t *table = mgl_call_at(call, MGL_CALL(call, enter, table));
    mgl_epoch_rows *epoch = call->epoch;
    int limit = mgl_limits_most(&call->program->limits);
    epoch->go = control[MGL_CONTROL_GO];
    epoch->rows = control[MGL_CONTROL_ROWS] < limit ? control[MGL_CONTROL_ROWS] : limit;
    epoch->epoch = control[MGL_CONTROL_EPOCH];
    epoch->next_list = control[MGL_CONTROL_NEXT];
    memcpy(epoch->table, table, (size_t)(limit * MGL_TABLE_WORDS) * sizeof *table);
}
