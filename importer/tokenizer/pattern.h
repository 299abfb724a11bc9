/*
 * Patterns of a tokenizer: a literal text, or a regular expression in Oniguruma's syntax (what
 * Hugging Face's tokenizers run), executed by PCRE2 after mgl_onig_translate. Matches are found as
 * the `onig` crate's find_iter does: leftmost, not overlapping, and no empty match right behind the
 * match before it.
 *
 * A pattern is not changed by a search: threads share it. What a search writes is the matcher, of
 * which every call that searches has its own.
 */
#ifndef MGL_IMPORTER_TOKENIZER_PATTERN_H
#define MGL_IMPORTER_TOKENIZER_PATTERN_H

#include "base/error.h"
#include "base/text.h"

typedef struct mgl_pattern mgl_pattern;
typedef struct mgl_matcher mgl_matcher;

/* A text that is searched for as it stands. Copied. */
mgl_status mgl_pattern_literal(const char *text, mgl_pattern **out, mgl_error *err);

/* An expression in Oniguruma's syntax. `file` is named in messages and kept, not copied. */
mgl_status mgl_pattern_regex(const char *onig, const char *file, mgl_pattern **out, mgl_error *err);

/* An expression in PCRE2's syntax, for what the project itself writes. */
mgl_status mgl_pattern_pcre(const char *pcre, const char *file, mgl_pattern **out, mgl_error *err);

void mgl_pattern_free(mgl_pattern *pattern); /* NULL is fine */

/* A matcher serves any patterns, one search after the other. */
mgl_status mgl_matcher_new(mgl_matcher **out, mgl_error *err);
void mgl_matcher_free(mgl_matcher *matcher); /* NULL is fine */

/* Where a search through one text stands. Start with {.text, .length}. */
typedef struct mgl_pattern_scan {
    const char *text; /* valid UTF-8 */
    size_t length;
    size_t from;       /* where the next search starts */
    size_t last_end;   /* end of the match before, if there was one */
    bool matched;      /* there was one */
    size_t start, end; /* the match that was found */
} mgl_pattern_scan;

/* *found: the next match is in scan->start and scan->end. Fails when the match limit is reached. */
mgl_status mgl_pattern_next(const mgl_pattern *pattern, mgl_matcher *matcher,
                            mgl_pattern_scan *scan, bool *found, mgl_error *err);

/* Whether the pattern matches at the very start of a text (a character class, in practice). */
mgl_status mgl_pattern_at_start(const mgl_pattern *pattern, mgl_matcher *matcher, const char *text,
                                size_t length, bool *matches, mgl_error *err);

/* Oniguruma -> PCRE2. `out` receives the PCRE2 text. */
mgl_status mgl_onig_translate(const char *onig, const char *file, mgl_text *out, mgl_error *err);

#endif
