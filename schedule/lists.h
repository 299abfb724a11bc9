/*
 * Joins the two task lists of a program for the CPU VM and the CUDA VM: locates the weights of the
 * second list on the tapes of the first list, and builds one program that contains the tasks of
 * both.
 */
#ifndef MGL_SCHEDULE_LISTS_H
#define MGL_SCHEDULE_LISTS_H

#include "schedule/program.h"

/* The location of a second-list segment on a tape of the first list. */
typedef struct mgl_home {
    int queue;      /* -1: none */
    int64_t offset; /* bytes from the start of that queue's tape */
} mgl_home;

/* Finds the location of each segment of the second list, in homes (second->segment_count). A
 * segment is a part of one segment of the first list: whole row groups and all columns. Both
 * lists must be well formed (MG1xx of the validator). Fails only with MGL_NO_MEMORY. */
mgl_status mgl_program_find_homes(const mgl_program *program, const mgl_program *second,
                                  mgl_home *homes, mgl_error *err);

/* Both lists in one program, as the machines run them: declarations of the second list, queues
 * and tapes of the first list, and the tasks of the first list followed by those of the second.
 * In epochs of the second list, queue q runs the tasks second[q]. Segments have their offsets on
 * the tapes of the first list; segment i is on the tape of queue tapes[i]. */
typedef struct mgl_joined {
    mgl_program *program;
    mgl_run *second; /* (queues) ranges of tasks */
    int *tapes;      /* (segments) */
} mgl_joined;

/* MGL_BAD_INPUT if a segment of the second list is not part of the first. Release with
 * mgl_joined_clear. */
mgl_status mgl_program_join(const mgl_program *program, mgl_joined *out, mgl_error *err);
void mgl_joined_clear(mgl_joined *joined);

#endif
