/* Declares the properties that every lowered program must have. */
#ifndef MGL_TESTS_SCHEDULE_PROPERTIES_H
#define MGL_TESTS_SCHEDULE_PROPERTIES_H

#include "lowering.h"

/* An assertion for the inner loops: Check's own notes every one that holds, too, in a file. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

/* Tasks of an op. */
int count_of(const mgl_program *p, mgl_op op);

/* Of a program of the shape with so many splits: every weight row stands on one tape, once; shares
 * are even; columns, regions, edges and tasks are those of the model. */
void check_all(const mgl_program *p, const shape *s, const mgl_schedule_config *config, int splits);

/* Of a program that exchanges flags: its words are written, cleared and waited for. */
void check_flags(const mgl_program *p);

/* The text of the program reads back as the same program, and is printed the same again. */
void check_text(const mgl_program *p);

#endif
