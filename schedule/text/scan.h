/*
 * Scanner for line-oriented text: a cursor, and functions that read one item at the cursor. Blanks
 * (spaces and tabs) before an item are skipped; `#` starts a comment that ends with the line. Used
 * by parse.c and by the moves' parser.
 *
 * Functions that can fail return false and fill *err and `status`. `what` names the expected item
 * in messages.
 */
#ifndef MGL_SCHEDULE_TEXT_SCAN_H
#define MGL_SCHEDULE_TEXT_SCAN_H

#include "base/source.h"

#define MGL_SCAN_NUMBER (INT64_C(1) << 53) /* largest number accepted */
enum {
    MGL_SCAN_NAME = 128,   /* bytes of the longest word */
    MGL_SCAN_STRING = 1024 /* bytes of the longest string */
};

typedef struct mgl_scan {
    mgl_source_text source; /* the current line, for messages */
    const char *at;         /* the cursor */
    mgl_error *err;
    mgl_status status;
} mgl_scan;

/* A word in the text. */
typedef struct mgl_word {
    const char *at;
    int length;
} mgl_word;
bool mgl_word_is(mgl_word word, const char *text);

/* Reports an error about the text between `from` and `to` of the current line. Returns false. */
bool mgl_scan_fail(mgl_scan *s, const char *from, const char *to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reports "expected <what>, found <text at the cursor>". Returns false. */
bool mgl_scan_fail_expected(mgl_scan *s, const char *what);
/* Memory ran out. Returns false. */
bool mgl_scan_fail_memory(mgl_scan *s, size_t bytes);

/* Moves to the next line with more than blanks and a comment. False at the end of the text. */
bool mgl_scan_next_line(mgl_scan *s);
/* Requires that the rest of the line has only blanks and a comment. */
bool mgl_scan_line_end(mgl_scan *s);
/* Whether the rest of the line has only blanks and a comment. Skips blanks. */
bool mgl_scan_at_line_end(mgl_scan *s);
void mgl_scan_skip_blanks(mgl_scan *s);
/* The end of the word, or of the single other byte, at the cursor; for messages. */
const char *mgl_scan_found_end(const mgl_scan *s);

/* Consumes the byte, or the word, if it is at the cursor. Returns whether it was. */
bool mgl_scan_take(mgl_scan *s, char byte);
bool mgl_scan_take_word(mgl_scan *s, const char *text);
/* The same, but reports an error if it is missing. */
bool mgl_scan_expect(mgl_scan *s, char byte);
bool mgl_scan_expect_word(mgl_scan *s, const char *text);

/* A word: [a-z0-9_.-]+, at most MGL_SCAN_NAME bytes. */
bool mgl_scan_word(mgl_scan *s, const char *what, mgl_word *out);
/* A decimal number without a sign, at most `max`. */
bool mgl_scan_number(mgl_scan *s, const char *what, int64_t max, int64_t *out);
bool mgl_scan_int(mgl_scan *s, const char *what, int *out);
/* A finite float without a sign. The decimal mark is a point in every locale. */
bool mgl_scan_float(mgl_scan *s, const char *what, float *out);
/* A string in double quotes, with \" and \\ and \xNN; no 0 byte. */
bool mgl_scan_string(mgl_scan *s, const char *what, char out[MGL_SCAN_STRING + 1]);

#endif
