/*
 * Legal schedules that are short to write and expensive to prove: each makes one loop of the
 * validator visit many times more items than the text has words. They extend the text case
 * accept_flags.mls by buffers, tasks and queues.
 */
#ifndef MGL_TESTS_VALIDATOR_SLOW_TEXTS_H
#define MGL_TESTS_VALIDATOR_SLOW_TEXTS_H

#include "base/text.h"

/* A kind of schedule, and the number of its pieces. */
typedef struct slow_kind {
    const char *name;
    void (*write)(mgl_text *to, int count);
    int count; /* maximum tested: about 3 MB of text, more for tasks on many queues */
} slow_kind;

extern const slow_kind slow_kinds[];
extern const int slow_kind_count;

/* The text of a kind. The test fails if the base text is missing. */
void slow_write(const slow_kind *kind, int count, mgl_text *to);

#endif
