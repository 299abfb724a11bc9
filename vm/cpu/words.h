/*
 * The flag words of explore: who wrote what memory holds, and what is written but not in sight yet.
 *
 * What a task stores to a flag region is taken back when the task has run and comes into sight
 * later, piece by piece, in any order: a relaxed store promises no more. Two things bring a piece
 * into sight at once: a task that touches its buffer and comes after the store by queue order and
 * counters, and the end of the launch. A reader waits while a word of its regions is all ones, as
 * on the machines, and takes what it then finds: also words of an earlier epoch that nobody
 * cleared. A label on each 16 bytes, the task and epoch that wrote them, tells such words from
 * right ones.
 */
#ifndef MGL_VM_CPU_WORDS_H
#define MGL_VM_CPU_WORDS_H

#include "vm/cpu/shadow.h"

typedef struct mgl_words mgl_words;

/* An access to words that are not as it needs them. */
typedef struct mgl_stale {
    enum { MGL_NO_STALE, MGL_STALE_READ, MGL_WRITTEN_TWICE, MGL_NOT_CLEARED } kind;
    int buffer;
    int task, epoch;        /* whose access it is */
    int other, other_epoch; /* who wrote the words before; task -1: nobody */
} mgl_stale;

mgl_status mgl_words_open(const mgl_machine *machine, const mgl_shadow *shadow, mgl_words **out,
                          mgl_error *err);
void mgl_words_close(mgl_words *words); /* NULL is fine */

/* The start of a launch: no word is written. The seed decides how stores fall into pieces. */
void mgl_words_reset(mgl_words *words, uint64_t seed);

/* Whether a buffer has flag words. */
bool mgl_words_has(const mgl_words *words, int buffer);

/* Queue q is about to execute its next task, after mgl_shadow_begin: brings into sight what the
 * task must see, checks what it reads and makes pieces of what it will store. False when memory ran
 * out. */
bool mgl_words_begin(mgl_words *words, int q, mgl_stale *stale);
/* It has executed the task: the stores go out of sight. */
void mgl_words_end(mgl_words *words);

/* Pieces out of sight. */
int mgl_words_hidden(const mgl_words *words);
/* Brings piece i into sight; the last piece takes its place. */
mgl_stale mgl_words_show(mgl_words *words, int i);

#endif
