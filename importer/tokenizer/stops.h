/*
 * Texts at which a stream of text ends. Bytes go in as they come, in any pieces, and what surely
 * stands before the first of these texts comes out. A beginning of one is held back.
 *
 * Of several, the one that is whole first ends the stream; of those that end with the same byte,
 * the longest. So the pieces make no difference.
 *
 * Each text has its failure table (Knuth, Morris, Pratt, "Fast Pattern Matching in Strings", 1977,
 * section 2): a byte is looked at once, and what has to be held back is the longest beginning that
 * the tables stand at.
 */
#ifndef MGL_IMPORTER_TOKENIZER_STOPS_H
#define MGL_IMPORTER_TOKENIZER_STOPS_H

#include "base/error.h"
#include "base/text.h"

/* One of the texts. */
typedef struct mgl_stop_text {
    char *bytes; /* (length) */
    size_t length;
    size_t *shorter; /* (length + 1) of a beginning: the longest that it ends with, itself apart */
    size_t matched;  /* bytes of the beginning that the stream ends with */
} mgl_stop_text;

/* Zero-initialise; release with mgl_stops_clear. */
typedef struct mgl_stops {
    mgl_stop_text *texts; /* (count) */
    size_t count;
    mgl_text text; /* what came out of the last call, and behind it what is held back */
    size_t out;    /* bytes of the former */
    bool found;
} mgl_stops;

/* Takes the texts (count), which are copied. MGL_BAD_INPUT: one is empty or no UTF-8, which would
 * never be found. *stops is empty before. */
mgl_status mgl_stops_open(mgl_stops *stops, const char *const *texts, size_t count, mgl_error *err);
void mgl_stops_clear(mgl_stops *stops);

/* Takes further bytes of whole characters. What comes out is stops->text, `out` bytes: whole
 * characters too. Nothing does once one of the texts was found. With `last`, nothing is held back.
 */
mgl_status mgl_stops_next(mgl_stops *stops, const char *bytes, size_t length, bool last,
                          mgl_error *err);

#endif
