/*
 * What the parts of the translation of Oniguruma's expressions share: the cursor, and what both
 * sides of a bracket need. onig.c has the grammar, onig_class.c escapes and character classes,
 * onig_case.c the folding of case.
 */
#ifndef MGL_IMPORTER_TOKENIZER_ONIG_H
#define MGL_IMPORTER_TOKENIZER_ONIG_H

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

#define MGL_ONIG_MAX_DEPTH 100 /* of groups or classes */
#define MGL_ONIG_END       UINT32_MAX

/* A pattern being translated. */
typedef struct mgl_onig {
    const char *pattern, *at, *end;
    const char *file; /* for messages */
    mgl_text *out;
    mgl_error *err;
    int depth;
    bool extended;   /* (?x): blanks and comments are left out */
    bool caseless;   /* (?i) */
    bool behind;     /* within a lookbehind */
    uint32_t before; /* what the letter before folds to; 0: none stands right before */
    bool parted;     /* Oniguruma may join the next letter to it although something is between */
} mgl_onig;

/* MGL_BAD_INPUT: the pattern has `what` at the cursor. */
mgl_status mgl_onig_refuse(mgl_onig *t, const char *what);
mgl_status mgl_onig_malformed(mgl_onig *t, const char *what);

/* The character at the cursor, MGL_ONIG_END behind the last; taken, or left there. */
uint32_t mgl_onig_peek(const mgl_onig *t);
uint32_t mgl_onig_take(mgl_onig *t);

/* Does this text stand at the cursor? mgl_onig_skip takes it then. */
bool mgl_onig_starts(const mgl_onig *t, const char *text);
bool mgl_onig_skip(mgl_onig *t, const char *text);

/* Up to `most` digits of a number. False when there is none. */
bool mgl_onig_take_number(mgl_onig *t, int base, int most, uint32_t *out);

/* A literal character, safe inside and outside of a class. */
void mgl_onig_put_literal(mgl_text *out, uint32_t character);

/* The one character that an escape stands for, its letter taken. */
mgl_status mgl_onig_take_escaped(mgl_onig *t, uint32_t letter, uint32_t *out);

/* An escape that stands for a set, its letter taken, outside of a class. *done: it was one. */
mgl_status mgl_onig_parse_set(mgl_onig *t, uint32_t letter, bool *done);

/* A character class, from its bracket on. */
mgl_status mgl_onig_parse_class(mgl_onig *t);

#endif
