/* Declares the properties that every lowered program must have. */
#ifndef MGL_TESTS_SCHEDULE_PROPERTIES_H
#define MGL_TESTS_SCHEDULE_PROPERTIES_H

#include "lowering.h"

/* An assertion for inner loops: Check's own assertions record each success, even in a file. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

/* The number of tasks of an op. */
int count_of(const mgl_program *p, mgl_op op);

/* Checks a program of the shape with this number of splits: every weight row is on one tape, once;
 * shares are even; columns, regions, edges and tasks are those of the model. */
void check_all(const mgl_program *p, const shape *s, const mgl_schedule_config *config, int splits);

/* Checks a program with flags: its words are written, cleared and waited for. */
void check_flags(const mgl_program *p);

/* Checks that the program's text parses to an equal program, which prints the same text. */
void check_text(const mgl_program *p);

#endif
