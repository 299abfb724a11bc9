/* Lexer of PTX: splits a text into names, directives, numbers, strings and marks, and skips
 * comments. The parser (parse.c, parse_body.c) calls it. */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_LEX_H
#define MGL_AUTOTUNE_KERNELS_PTX_LEX_H

#include "autotune/kernels/ptx/ptx.h"
#include "base/source.h"

typedef enum mgl_ptx_word_kind {
    MGL_PTX_WORD_END,
    MGL_PTX_WORD_NAME,      /* ld.global.v4.u32, %r1, $L__BB0_1, _Z4add */
    MGL_PTX_WORD_DIRECTIVE, /* .reg; also a modifier after a blank */
    MGL_PTX_WORD_NUMBER,    /* 12, 0x1F, 0f3F800000, 1.5 */
    MGL_PTX_WORD_STRING,
    MGL_PTX_WORD_MARK, /* one character */
    MGL_PTX_WORD_BAD   /* a comment or string that is not closed, or a byte that starts no word */
} mgl_ptx_word_kind;

typedef struct mgl_ptx_lexer {
    mgl_source_text source; /* its `line` and `number` are the position of the current word */
    const char *next;       /* end of the current word */
    mgl_ptx_word_kind kind;
    mgl_ptx_slice word;
} mgl_ptx_lexer;

void mgl_ptx_lex_start(mgl_ptx_lexer *lexer, const char *text, size_t length, const char *file);
/* Advances to the next word. */
void mgl_ptx_lex(mgl_ptx_lexer *lexer);
/* Advances to the first word of the next line; for .loc and .file. */
void mgl_ptx_lex_line(mgl_ptx_lexer *lexer);

#endif
