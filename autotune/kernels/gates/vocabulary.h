/*
 * The words of the kernel, as a unit's text may have them: which stand in other files of it, and
 * which are its scheduling's own. Made of the sources that are built in and of words.def, so that a
 * word that is added to the machine is known here.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_VOCABULARY_H
#define MGL_AUTOTUNE_KERNELS_GATES_VOCABULARY_H

#include "autotune/kernels/gates/lex.h"
#include "autotune/kernels/gates/unit.h"

enum {
    MGL_WORD_ELSEWHERE = 1, /* stands in another file of the kernel than the unit's */
    MGL_WORD_SCHEDULER = 2, /* a function, type or constant of a scheduling file */
    MGL_WORD_MEMBER = 4,    /* a member of a type there */
    MGL_WORD_FAMILY = 8,    /* stands in the text of a unit of the family */
    MGL_WORD_OWN = 16,      /* stands in the unit's own text */
    MGL_WORD_DECLARED = 32, /* and is declared there at file scope */
    MGL_WORD_INCLUDE = 64   /* of a path in quotes: a unit of the family includes it */
};

typedef struct mgl_vocabulary mgl_vocabulary;

/* Release with mgl_vocabulary_close. */
mgl_status mgl_vocabulary_open(const mgl_kernel_unit *unit, mgl_vocabulary **out, mgl_error *err);
void mgl_vocabulary_close(mgl_vocabulary *vocabulary); /* NULL is fine */

/* MGL_WORD_... bits; 0: the kernel does not have the word. */
unsigned mgl_vocabulary_look(const mgl_vocabulary *vocabulary, const mgl_token *word);

#endif
