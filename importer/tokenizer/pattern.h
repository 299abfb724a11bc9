/*
 * Patterns of a tokenizer: a literal text, or a regular expression in Oniguruma's syntax (which
 * Hugging Face's tokenizers use), translated by mgl_onig_translate and executed by PCRE2. Matches
 * are found as by find_iter of the `onig` crate: leftmost, not overlapping, and no empty match
 * directly after the match before. Used by added tokens, normalizers, splitters and decoders.
 *
 * A search does not modify the pattern, so threads can share it. The mutable state is in the
 * matcher; each thread needs its own.
 */
#ifndef MGL_IMPORTER_TOKENIZER_PATTERN_H
#define MGL_IMPORTER_TOKENIZER_PATTERN_H

#include "base/error.h"
#include "base/text.h"

typedef struct mgl_pattern mgl_pattern;
typedef struct mgl_matcher mgl_matcher;

/* Makes a pattern for a literal text, which is copied. */
mgl_status mgl_pattern_literal(const char *text, mgl_pattern **out, mgl_error *err);

/* Makes a pattern from an expression in Oniguruma's syntax. `file` is for messages and kept, not
 * copied. */
mgl_status mgl_pattern_regex(const char *onig, const char *file, mgl_pattern **out, mgl_error *err);

/* Makes a pattern from an expression in PCRE2's syntax, for built-in expressions. */
mgl_status mgl_pattern_pcre(const char *pcre, const char *file, mgl_pattern **out, mgl_error *err);

void mgl_pattern_free(mgl_pattern *pattern); /* NULL is fine */

/* Makes a matcher. It serves any patterns, one search at a time. */
mgl_status mgl_matcher_new(mgl_matcher **out, mgl_error *err);
void mgl_matcher_free(mgl_matcher *matcher); /* NULL is fine */

/* The state of a search through one text. Start with {.text, .length}. */
typedef struct mgl_pattern_scan {
    const char *text; /* valid UTF-8 */
    size_t length;
    size_t from;       /* start of the next search */
    size_t last_end;   /* end of the match before, if `matched` */
    bool matched;      /* there was a match before */
    size_t start, end; /* the match found */
} mgl_pattern_scan;

/* Finds the next match: *found, scan->start and scan->end. Fails if the match limit is reached. */
mgl_status mgl_pattern_next(const mgl_pattern *pattern, mgl_matcher *matcher,
                            mgl_pattern_scan *scan, bool *found, mgl_error *err);

/* Sets *matches if the pattern matches at the start of a text (used with character classes). */
mgl_status mgl_pattern_at_start(const mgl_pattern *pattern, mgl_matcher *matcher, const char *text,
                                size_t length, bool *matches, mgl_error *err);

/* Translates a pattern from Oniguruma's to PCRE2's syntax into `out`. */
mgl_status mgl_onig_translate(const char *onig, const char *file, mgl_text *out, mgl_error *err);

#endif
