/*
 * The words of a CUDA C++ text: what the compiler will see of it, as far as a static scan has to
 * know that. Comments are left out; a string keeps its quotes; directives are words like all
 * others, the first of which says that it begins a line.
 *
 * The lexer refuses what a reader would take for something else than the compiler does: trigraphs,
 * digraphs, words and strings that a line continuation breaks, comments that go on by one, escapes
 * in names, raw strings, bytes that are not ASCII. So whoever looks at the words has no second
 * spelling to think of.
 */
#ifndef MGL_AUTOTUNE_KERNELS_GATES_LEX_H
#define MGL_AUTOTUNE_KERNELS_GATES_LEX_H

#include "base/error.h"

typedef enum mgl_token_kind {
    MGL_TOKEN_WORD,   /* a name or a keyword */
    MGL_TOKEN_NUMBER, /* a preprocessing number */
    MGL_TOKEN_STRING, /* "..." without a prefix */
    MGL_TOKEN_CHAR,   /* '...' */
    MGL_TOKEN_MARK,   /* one of ( ) { } ; + ..., or :: -> ## */
    MGL_TOKEN_BRANCH  /* made by the scan: a directive that may leave out what stands around it */
} mgl_token_kind;

typedef struct mgl_token {
    mgl_token_kind kind;
    const char *text; /* (length) of what was read */
    int length;
    int line;     /* from 1 */
    bool starts;  /* the first of its line, continued lines being one */
    bool apart;   /* something stands between it and the one before */
    bool foreign; /* made by the scan: from the body of a macro */
} mgl_token;

typedef struct mgl_tokens {
    mgl_token *list; /* (count) */
    size_t count, capacity;
} mgl_tokens;

enum { MGL_SCAN_WHAT = 200 };

/* What is refused first. */
typedef struct mgl_scan_fault {
    int line;                 /* 0: nothing is */
    char what[MGL_SCAN_WHAT]; /* what stands there and why it may not */
} mgl_scan_fault;

/* Says it, if nothing was said before; false, to be returned. */
bool mgl_scan_refuse(mgl_scan_fault *fault, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads a text, up to the first fault. Fails only where memory ran out. The words point into the
 * text. Release with mgl_tokens_clear. */
mgl_status mgl_lex(const char *text, size_t length, mgl_tokens *out, mgl_scan_fault *fault,
                   mgl_error *err);
bool mgl_tokens_add(mgl_tokens *tokens, const mgl_token *token);
void mgl_tokens_clear(mgl_tokens *tokens);

bool mgl_token_is(const mgl_token *token, const char *text); /* whatever its kind */

#endif
