/* Token draws of rows with a temperature, used by `draw`, or by a sample that draws itself. */
#ifndef MGL_SAMPLE_DRAW_ROW_H
#define MGL_SAMPLE_DRAW_ROW_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the sequence (MGL_SEQUENCE_WORDS) is sampled with a temperature. */
bool mgl_is_drawn(const int32_t *sequence);

/* Draws the next token of the sequence from finite logits (vocab). */
int mgl_draw_row(const float *logits, int vocab, const int32_t *sequence);

#endif
