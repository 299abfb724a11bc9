/*
 * The second task list of a program, as machines take it.
 */
#ifndef MGL_SCHEDULE_LISTS_H
#define MGL_SCHEDULE_LISTS_H

#include "schedule/program.h"

/* Where a segment of the second list lies: on a tape of the first. */
typedef struct mgl_home {
    int queue;      /* -1: nowhere */
    int64_t offset; /* bytes from the start of that queue's tape */
} mgl_home;

/* Finds the homes (many->segment_count) of the second list's segments: each is a part, of whole row
 * groups and all columns, of one segment of the first list. Both lists are well formed (the
 * validator's MG1xx). MGL_NO_MEMORY. */
mgl_status mgl_program_find_homes(const mgl_program *program, const mgl_program *many,
                                  mgl_home *homes, mgl_error *err);

/* Both lists in one program, which machines run: the declarations of the second list, queues and
 * tapes of the first, and the tasks of the first list with those of the second behind them. Queue q
 * runs *many[q] of these in epochs of the second list. Segments have their offsets on the first
 * list's tapes; *tapes[i] is the queue whose tape segment i is on. */
typedef struct mgl_joined {
    mgl_program *program;
    mgl_run *many; /* (queues) of tasks */
    int *tapes;    /* (segments) */
} mgl_joined;

/* MGL_BAD_INPUT where a segment of the second list has no home. Release with mgl_joined_clear. */
mgl_status mgl_program_join(const mgl_program *program, mgl_joined *out, mgl_error *err);
void mgl_joined_clear(mgl_joined *joined);

#endif
