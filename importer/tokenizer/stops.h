/*
 * Stop strings of a text stream. Bytes go in as they arrive, in pieces of any size. Text that
 * certainly precedes the first stop string comes out. Text that may begin a stop string is held
 * back. Used by the detokenizer.
 *
 * The stop string that is complete first ends the stream. If several end at the same byte, the
 * longest counts. So the result does not depend on the pieces.
 *
 * The search uses one failure table per stop string (Knuth, Morris, Pratt, "Fast Pattern Matching
 * in Strings", 1977, section 2). Each byte is examined once. The held-back text is the longest
 * prefix of a stop string at the end of the stream.
 */
#ifndef MGL_IMPORTER_TOKENIZER_STOPS_H
#define MGL_IMPORTER_TOKENIZER_STOPS_H

#include "base/error.h"
#include "base/text.h"

/* One stop string. */
typedef struct mgl_stop_text {
    char *bytes; /* (length) */
    size_t length;
    size_t *shorter; /* failure table (length + 1): of each prefix, its longest proper prefix
                      * that is also its suffix */
    size_t matched;  /* length of the prefix that the stream ends with */
} mgl_stop_text;

/* Zero-initialize; release with mgl_stops_clear. */
typedef struct mgl_stops {
    mgl_stop_text *texts; /* (count) */
    size_t count;
    mgl_text text; /* the output of the last call, then the held-back text */
    size_t out;    /* bytes of that output */
    bool found;
} mgl_stops;

/* Copies the texts (count) into an empty *stops. Returns MGL_BAD_INPUT if one is empty or not
 * UTF-8, because it would never be found. */
mgl_status mgl_stops_open(mgl_stops *stops, const char *const *texts, size_t count, mgl_error *err);
void mgl_stops_clear(mgl_stops *stops);

/* Processes further bytes (whole characters). The output is the first `out` bytes of
 * stops->text, also whole characters. After a stop string was found, there is no output. With
 * `last`, nothing is held back. */
mgl_status mgl_stops_next(mgl_stops *stops, const char *bytes, size_t length, bool last,
                          mgl_error *err);

#endif
