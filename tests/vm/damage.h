/*
 * Schedule texts, damaged at random: tasks are lost, doubled, exchanged and moved, their regions,
 * waits and signals too, flags and sets come and go, numbers and names change. Variants are named,
 * taken away and exchanged, and what they were chosen for changes under them: shapes, rows,
 * formats, the exec line, the target, biases and norms. Some damages leave more in order than they
 * change: thresholds follow the signals, queues exchange their tasks, a product becomes two. What
 * comes out may be no schedule, an unsafe one, or one that is as good as before.
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

/* What is damaged: what is done and in which order, or what the variants of tasks are about. */
typedef enum damage_kind { DAMAGE_WORK, DAMAGE_VARIANTS } damage_kind;

/* The damages of damage.def, by number. */
enum {
    DAMAGES = 0
#define DAMAGE(function, name, weight, reshapes, kind) +1
#include "damage.def"
};

/* Damages it, as the state of the random numbers says; which damage that was. *reshaped becomes
 * true when a region may no longer be as large as its op takes it to be. */
int schedule_text_damage(schedule_text *text, damage_kind kind, uint64_t *random, bool *reshaped);
const char *damage_name(int damage);

/* A number from 0 to below `below`, and the next state. */
int damage_draw(uint64_t *random, int below);

#endif
