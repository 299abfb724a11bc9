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

/* Splits a printed schedule into its parts. Release with schedule_text_free. */
schedule_text *schedule_text_read(const char *text);
schedule_text *schedule_text_copy(const schedule_text *from);
void schedule_text_free(schedule_text *text);

/* Joins the parts to text; the caller clears `to`. */
void schedule_text_print(const schedule_text *text, mgl_text *to);

/* Groups of damages: the tasks and their order, the variants of tasks and their conditions, or the
 * weight formats of tensors. */
typedef enum damage_kind { DAMAGE_WORK, DAMAGE_VARIANTS, DAMAGE_FORMATS } damage_kind;

/* The damages of damage.def, by number. */
enum {
    DAMAGES = 0
#define DAMAGE(function, name, weight, reshapes, kind) +1
#include "damage.def"
};

/* Applies a random damage, and returns its number. *reshaped becomes true if a region may no longer
 * have the size that its op assumes. */
int schedule_text_damage(schedule_text *text, damage_kind kind, uint64_t *random, bool *reshaped);
const char *damage_name(int damage);

/* Returns a random number from 0 to below `below`, and the next state. */
int damage_draw(uint64_t *random, int below);

#endif
