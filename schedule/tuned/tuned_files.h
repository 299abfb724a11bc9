/* The shipped tuned entries, which tuned.cmake generates from schedule/tuned. Used by
 * tuned_folder.c. */
#ifndef MGL_SCHEDULE_TUNED_FILES_H
#define MGL_SCHEDULE_TUNED_FILES_H

typedef struct mgl_tuned_file {
    const char *name; /* path in the source tree */
    const char *text; /* 0-terminated */
} mgl_tuned_file;

extern const mgl_tuned_file mgl_tuned_files[]; /* terminated by a row of NULLs */

#endif
