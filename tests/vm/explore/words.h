/*
 * Relaxed-memory model of flag words for explore. It tracks which task wrote each flag word, and
 * which stores are not visible yet.
 *
 * After a task has run, its stores to flag regions are hidden again and become visible later, in
 * pieces, in any order: relaxed stores promise no more. Two events make a piece visible at once: a
 * task that accesses the piece's buffer and is ordered after the store by queue order and counters,
 * and the end of the launch. A reader waits while a word of its regions is all ones, as on the
 * machines. It then reads what it finds, even words of an earlier epoch that were not cleared. Each
 * 16 bytes have a label, the task and epoch that wrote them, which detects such stale words.
 */
#ifndef MGL_TESTS_VM_EXPLORE_WORDS_H
#define MGL_TESTS_VM_EXPLORE_WORDS_H

#include "tests/vm/explore/shadow.h"

typedef struct mgl_words mgl_words;

/* An access to flag words that are stale or already written. */
typedef struct mgl_stale {
    enum { MGL_NO_STALE, MGL_STALE_READ, MGL_WRITTEN_TWICE, MGL_NOT_CLEARED } kind;
    int buffer;
    int task, epoch;        /* of the access */
    int other, other_epoch; /* of the earlier writer of the words; task -1: none */
} mgl_stale;

mgl_status mgl_words_open(const mgl_machine *machine, const mgl_shadow *shadow, mgl_words **out,
                          mgl_error *err);
void mgl_words_close(mgl_words *words); /* NULL is allowed */

/* Starts a launch: no word is written. The seed decides how stores are split into pieces. */
void mgl_words_reset(mgl_words *words, uint64_t seed);

/* Whether a buffer has flag words. */
bool mgl_words_has(const mgl_words *words, int buffer);

/* Called before queue q executes its next task, after mgl_shadow_begin. Makes visible what the task
 * must see, checks what it reads, and creates pieces for its stores. False when memory ran out. */
bool mgl_words_begin(mgl_words *words, int q, mgl_stale *stale);
/* Called after the task has executed: hides its stores. */
void mgl_words_end(mgl_words *words);

/* Number of hidden pieces. */
int mgl_words_hidden(const mgl_words *words);
/* Makes piece i visible; the last piece takes its index. */
mgl_stale mgl_words_show(mgl_words *words, int i);

#endif
