/*
 * Fuzzing of schedule texts: random damages. Tasks, regions, waits and signals are removed,
 * doubled, exchanged and moved; flags and sets are added and removed; numbers and names change.
 * Variants are named, removed and exchanged, and their conditions change: shapes, rows, formats,
 * the exec line, the target, biases and norms. Some damages preserve more of the order: thresholds
 * follow the signals, queues exchange their tasks, or a product is split in two. The result may be
 * an invalid schedule, an unsafe one, or a correct one.
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
