/*
 * Internal header of the translator from Oniguruma's regular expressions to PCRE2: the cursor,
 * and functions used both inside and outside character classes. onig.c parses the grammar,
 * onig_class.c escapes and character classes, onig_case.c handles case folding.
 */
#ifndef MGL_IMPORTER_TOKENIZER_ONIG_H
#define MGL_IMPORTER_TOKENIZER_ONIG_H

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

#define MGL_ONIG_MAX_DEPTH 100 /* of groups or classes */
#define MGL_ONIG_END       UINT32_MAX

/* The translation state of a pattern. */
typedef struct mgl_onig {
    const char *pattern, *at, *end;
    const char *file; /* for messages */
    mgl_text *out;
    mgl_error *err;
    int depth;
    bool extended;   /* (?x): white space and comments are ignored */
    bool caseless;   /* (?i) */
    bool behind;     /* inside a lookbehind */
    uint32_t before; /* the case folding of the letter directly before; 0: none */
    bool parted;     /* Oniguruma may join the next letter to it despite an empty group between */
} mgl_onig;

/* Returns MGL_BAD_INPUT: the pattern has the unsupported element `what` at the cursor. */
mgl_status mgl_onig_refuse(mgl_onig *t, const char *what);
mgl_status mgl_onig_malformed(mgl_onig *t, const char *what);

/* Returns the character at the cursor, or MGL_ONIG_END; peek leaves the cursor, take advances
 * it. */
uint32_t mgl_onig_peek(const mgl_onig *t);
uint32_t mgl_onig_take(mgl_onig *t);

/* Returns whether this text is at the cursor. mgl_onig_skip also advances past it. */
bool mgl_onig_starts(const mgl_onig *t, const char *text);
bool mgl_onig_skip(mgl_onig *t, const char *text);

/* Reads a number of up to `most` digits. Returns false if there is none. */
bool mgl_onig_take_number(mgl_onig *t, int base, int most, uint32_t *out);

/* Writes a literal character, escaped for use inside and outside a class. */
void mgl_onig_put_literal(mgl_text *out, uint32_t character);

/* Reads the rest of an escape for one character; its letter is already taken. */
mgl_status mgl_onig_take_escaped(mgl_onig *t, uint32_t letter, uint32_t *out);

/* Translates an escape for a set outside a class; its letter is already taken. *done: the escape
 * was a set. */
mgl_status mgl_onig_parse_set(mgl_onig *t, uint32_t letter, bool *done);

/* Translates a character class, starting at its bracket. */
mgl_status mgl_onig_parse_class(mgl_onig *t);

#endif
