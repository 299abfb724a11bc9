/* Words of PTX: names, directives, numbers, strings and marks. Comments stand between words. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_LEX_H
#define MGL_AUTOTUNE_KERNELS_PTX_LEX_H

#include "autotune/kernels/ptx/ptx.h"
#include "base/source.h"

typedef enum mgl_ptx_word_kind {
    MGL_PTX_WORD_END,
    MGL_PTX_WORD_NAME,      /* ld.global.v4.u32, %r1, $L__BB0_1, _Z4add */
    MGL_PTX_WORD_DIRECTIVE, /* .reg; also a modifier behind a blank */
    MGL_PTX_WORD_NUMBER,    /* 12, 0x1F, 0f3F800000, 1.5 */
    MGL_PTX_WORD_STRING,
    MGL_PTX_WORD_MARK, /* one character */
    MGL_PTX_WORD_BAD   /* a comment or string without an end, or a byte that begins no word */
} mgl_ptx_word_kind;

typedef struct mgl_ptx_lexer {
    mgl_source_text source; /* its `line` and `number` are those of the word at hand */
    const char *next;       /* behind the word at hand */
    mgl_ptx_word_kind kind;
    mgl_ptx_slice word;
} mgl_ptx_lexer;

void mgl_ptx_lex_start(mgl_ptx_lexer *lexer, const char *text, size_t length, const char *file);
/* Goes to the next word. */
void mgl_ptx_lex(mgl_ptx_lexer *lexer);
/* Goes behind the end of the line at hand, to the first word there: of .loc and .file. */
void mgl_ptx_lex_line(mgl_ptx_lexer *lexer);

#endif
