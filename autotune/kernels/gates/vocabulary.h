/*
 * Vocabulary of the kernel: for each word, which files of the kernel contain it and whether it
 * belongs to the scheduling code. The table is built from the built-in sources and words.def, so
 * new words of the machine are included automatically. The scan and the macro expansion look up a
 * text's words.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_VOCABULARY_H
#define MGL_AUTOTUNE_KERNELS_GATES_VOCABULARY_H

#include "autotune/kernels/gates/lex.h"
#include "autotune/kernels/gates/unit.h"

enum {
    MGL_WORD_ELSEWHERE = 1, /* occurs in another file of the kernel than the unit's */
    MGL_WORD_SCHEDULER = 2, /* a function, type or constant of a scheduling file */
    MGL_WORD_MEMBER = 4,    /* a member of a type of a scheduling file */
    MGL_WORD_FAMILY = 8,    /* occurs in the text of a unit of the family */
    MGL_WORD_OWN = 16,      /* occurs in the unit's original text */
    MGL_WORD_DECLARED = 32, /* declared there at file scope */
    MGL_WORD_INCLUDE = 64   /* for a path in quotes: a unit of the family includes it */
};

typedef struct mgl_vocabulary mgl_vocabulary;

/* Release with mgl_vocabulary_close. */
mgl_status mgl_vocabulary_open(const mgl_kernel_unit *unit, mgl_vocabulary **out, mgl_error *err);
void mgl_vocabulary_close(mgl_vocabulary *vocabulary); /* NULL is fine */

/* MGL_WORD_... bits; 0: the kernel does not contain the word. */
unsigned mgl_vocabulary_look(const mgl_vocabulary *vocabulary, const mgl_token *word);

#endif
