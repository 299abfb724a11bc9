/*
 * Lexer for CUDA C++: splits a text into the tokens that the compiler sees, for the static scan.
 * Comments are dropped; a string keeps its quotes. Directives are ordinary tokens; the first token
 * of a line is marked. The scan, the hash and the declarations use it.
 *
 * The lexer rejects text that a reader and the compiler could read differently: trigraphs,
 * digraphs, words and strings broken by a line continuation, comments continued by one, escapes in
 * names, raw strings, and bytes that are not ASCII. So each word has a single spelling.
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
    MGL_TOKEN_BRANCH  /* inserted by the scan: a directive that may remove the tokens around it */
} mgl_token_kind;

typedef struct mgl_token {
    mgl_token_kind kind;
    const char *text; /* (length) in the source text */
    int length;
    int line;    /* line number, from 1 */
    bool starts; /* the first token of its line; continued lines count as one */
    bool apart;  /* separated from the previous token */
} mgl_token;

typedef struct mgl_tokens {
    mgl_token *list; /* (count) */
    size_t count, capacity;
} mgl_tokens;

enum { MGL_SCAN_WHAT = 200 };

/* The first fault. */
typedef struct mgl_scan_fault {
    int line;                 /* 0: no fault */
    char what[MGL_SCAN_WHAT]; /* what was found, and why it is forbidden */
} mgl_scan_fault;

/* Sets the fault if none is set; returns false, for the caller to return. */
bool mgl_scan_refuse(mgl_scan_fault *fault, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Tokenizes a text up to the first fault. Fails only if memory runs out. The tokens point into
 * the text. Release with mgl_tokens_clear. */
mgl_status mgl_lex(const char *text, size_t length, mgl_tokens *out, mgl_scan_fault *fault,
                   mgl_error *err);
bool mgl_tokens_add(mgl_tokens *tokens, const mgl_token *token);
void mgl_tokens_clear(mgl_tokens *tokens);

bool mgl_token_is(const mgl_token *token, const char *text); /* compares the text of a token of any
                                                              * kind */

#endif
