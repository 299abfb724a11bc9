/*
 * Matching without regard to case, where Oniguruma and PCRE2 differ.
 *
 * Oniguruma folds the German sharp s to "ss", and so takes one for the other; PCRE2 knows pairs of
 * single characters alone. 104 characters fold to two or three. In a literal they are written out
 * as alternatives. In a class they are refused: Oniguruma makes alternatives of the class that
 * matter when it goes back.
 *
 * Oniguruma closes a class under case, whatever it is made of. PCRE2 does so for the characters
 * that the class lists and not for its properties: what is missing is listed.
 */
#ifndef MGL_IMPORTER_TOKENIZER_ONIG_CASE_H
#define MGL_IMPORTER_TOKENIZER_ONIG_CASE_H

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

/* What several characters and single ones fold to alike. */
typedef struct mgl_folding {
    uint32_t folded[3];     /* two or three; 0 behind them */
    uint32_t characters[2]; /* one or two that fold to these; 0 behind them */
} mgl_folding;

/* The folding of a character that folds to several; NULL for the others. */
const mgl_folding *mgl_folding_of(uint32_t character);

/* The longest folding that `folded` (count) begins with; NULL: there is none. */
const mgl_folding *mgl_folding_at(const uint32_t *folded, size_t count);
size_t mgl_folding_length(const mgl_folding *folding);

/* Do the two stand next to each other in a folding? */
bool mgl_folding_joins(uint32_t left, uint32_t right);

/* What a character folds to that does not fold to several. */
uint32_t mgl_fold(uint32_t character);

/* What a class lacks to be closed under case. `matcher` is the class in PCRE2's syntax, `negated`
 * by its own ^. `out` receives the characters as the inside of a class, those which the class
 * without its ^ lacks. *several: one that it has and that folds to several; 0: none. */
mgl_status mgl_close_class(const char *matcher, bool negated, const char *file, mgl_text *out,
                           uint32_t *several, mgl_error *err);

#endif
