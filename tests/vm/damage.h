/*
 * Schedule texts, damaged at random: tasks are lost, doubled, exchanged and moved, their regions,
 * waits and signals too, flags and sets come and go, numbers and names change. What comes out may
 * be no schedule, an unsafe one, or one that is as good as before.
 */
#ifndef MGL_TESTS_VM_DAMAGE_H
#define MGL_TESTS_VM_DAMAGE_H

#include "base/text.h"

#include <stdint.h>

typedef struct schedule_text schedule_text;

/* Takes a printed schedule apart. Release with schedule_text_free. */
schedule_text *schedule_text_read(const char *text);
schedule_text *schedule_text_copy(const schedule_text *from);
void schedule_text_free(schedule_text *text);

/* Prints it; the caller clears `to`. */
void schedule_text_print(const schedule_text *text, mgl_text *to);

/* Damages it at one place, as the state of the random numbers says; what was done. *reshaped
 * becomes true when a region may no longer be as large as its op takes it to be. */
const char *schedule_text_damage(schedule_text *text, uint64_t *random, bool *reshaped);

#endif
