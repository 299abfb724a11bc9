/* The tuned entries that are shipped: made by tuned.cmake of what stands in schedule/tuned. */
#ifndef MGL_SCHEDULE_TUNED_FILES_H
#define MGL_SCHEDULE_TUNED_FILES_H

typedef struct mgl_tuned_file {
    const char *name; /* path in the source */
    const char *text; /* 0-terminated */
} mgl_tuned_file;

extern const mgl_tuned_file mgl_tuned_files[]; /* a row of NULLs ends it */

#endif
