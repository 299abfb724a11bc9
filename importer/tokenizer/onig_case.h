/*
 * Caseless matching, where Oniguruma and PCRE2 differ.
 *
 * Oniguruma folds the German sharp s to "ss", so either matches the other; PCRE2 folds only single
 * characters. 104 characters fold to two or three characters. In a literal they are written out as
 * alternatives. In a class they are rejected, because Oniguruma makes alternatives of the class,
 * which affects backtracking.
 *
 * Oniguruma closes every class under case. PCRE2 closes only the characters that the class lists,
 * not its properties. The missing characters are therefore added to the list.
 */
#ifndef MGL_IMPORTER_TOKENIZER_ONIG_CASE_H
#define MGL_IMPORTER_TOKENIZER_ONIG_CASE_H

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

/* A folding: several characters, and the single characters with the same folding. */
typedef struct mgl_folding {
    uint32_t folded[3];     /* two or three, then 0 */
    uint32_t characters[2]; /* one or two, then 0 */
} mgl_folding;

/* Returns the folding of a character that folds to several characters; NULL for other
 * characters. */
const mgl_folding *mgl_folding_of(uint32_t character);

/* Returns the longest folding that `folded` (count) begins with, or NULL. */
const mgl_folding *mgl_folding_at(const uint32_t *folded, size_t count);
size_t mgl_folding_length(const mgl_folding *folding);

/* Returns whether the two are adjacent in a folding. */
bool mgl_folding_joins(uint32_t left, uint32_t right);

/* Returns the folding of a character that folds to a single character. */
uint32_t mgl_fold(uint32_t character);

/* Finds the characters that a class lacks to be closed under case. `matcher` is the class in
 * PCRE2's syntax; `negated`: it starts with ^. `out` receives the missing characters as the
 * inside of a class, relative to the class without its ^. *several: a member that folds to
 * several characters; 0: none. */
mgl_status mgl_close_class(const char *matcher, bool negated, const char *file, mgl_text *out,
                           uint32_t *several, mgl_error *err);

#endif
