/* Internal interface of the PTX parser (recursive descent), shared by parse.c (declarations) and
 * parse_body.c (bodies). */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_PARSE_H
#define MGL_AUTOTUNE_KERNELS_PTX_PARSE_H

#include "autotune/kernels/ptx/lex.h"
#include "autotune/kernels/ptx/names.h"

typedef struct mgl_ptx_parser {
    mgl_ptx_lexer lexer;
    mgl_ptx_names names;
    mgl_ptx *ptx;
    int32_t function, scope; /* the current function and block; MGL_PTX_NONE: none */
    int depth;               /* nesting depth of blocks */
    mgl_error *err;
} mgl_ptx_parser;

mgl_status mgl_ptx_complain(mgl_ptx_parser *p, const char *message);
bool mgl_ptx_at(const mgl_ptx_parser *p, const char *word);
/* Skips the given word; an error if the current word differs. */
mgl_status mgl_ptx_expect(mgl_ptx_parser *p, const char *word, const char *message);
/* Parses an integer of any base. False: not an integer. */
bool mgl_ptx_integer(mgl_ptx_slice word, int64_t *out);
/* Skips to after `until`, across balanced brackets. */
mgl_status mgl_ptx_skip(mgl_ptx_parser *p, const char *until);

/* Parses a directive that may occur in modules and in bodies: variables, a row of a line table, a
 * pragma. *known false: the directive is not one of these. */
mgl_status mgl_ptx_parse_shared(mgl_ptx_parser *p, bool *known);
/* Parses a block from its opening brace to after its closing brace. */
mgl_status mgl_ptx_parse_body(mgl_ptx_parser *p);

/* Makes room for one more element of `list`. */
#define MGL_PTX_GROW(p, items, list)                                                               \
    (mgl_grow((void **)&(p)->ptx->items, &(p)->ptx->list.capacity, (p)->ptx->list.count,           \
              sizeof *(p)->ptx->items))

#endif
