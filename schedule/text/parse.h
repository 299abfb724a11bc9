/*
 * The state of the parser of the text form, and the functions that its files share. Each function
 * reads one construct at the cursor and returns whether it is present; the first failure fills the
 * error. parse.c reads declarations, queues and tasks, parse_header.c the header.
 */
#ifndef MGL_SCHEDULE_TEXT_PARSE_H
#define MGL_SCHEDULE_TEXT_PARSE_H

#include "schedule/schedule.h"
#include "schedule/text/names.h"
#include "schedule/text/scan.h"

#define MGL_TEXT_SECOND_ROWS "second_rows" /* in the limits, the rows of the second list */

typedef struct mgl_text_parser {
    mgl_scan *scan;
    mgl_program *program; /* the current list */
    mgl_program *first;   /* the first list, while `program` is the second; else NULL */
    mgl_names tensors, buffers, counters;
} mgl_text_parser;

bool mgl_text_read_dtype(mgl_text_parser *p, mgl_dtype *out);
bool mgl_text_read_format(mgl_text_parser *p, mgl_weight_format *out);

/* "key N" */
bool mgl_text_read_size_field(mgl_text_parser *p, const char *key, int64_t *out);

/* Reads the header: the statements `megalith`, `target`, `model`, `limits`, `exec` and `types`. */
bool mgl_text_read_header(mgl_text_parser *p);
/* Reads the rest of the optional line `tuned` after the header. */
bool mgl_text_read_tuned(mgl_text_parser *p);

#endif
