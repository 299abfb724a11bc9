/* The parser at work: shared by what reads declarations (parse.c) and bodies (parse_body.c). */
#ifndef MGL_AUTOTUNE_KERNELS_PTX_PARSE_H
#define MGL_AUTOTUNE_KERNELS_PTX_PARSE_H

#include "autotune/kernels/ptx/lex.h"
#include "autotune/kernels/ptx/names.h"

typedef struct mgl_ptx_parser {
    mgl_ptx_lexer lexer;
    mgl_ptx_names names;
    mgl_ptx *ptx;
    int32_t function, scope; /* at hand; MGL_PTX_NONE */
    int depth;               /* of blocks */
    mgl_error *err;
} mgl_ptx_parser;

/* What the linkage and the words in front of a declaration say. */
typedef struct mgl_ptx_declaration {
    mgl_ptx_space space;
    bool external;
} mgl_ptx_declaration;

mgl_status mgl_ptx_complain(mgl_ptx_parser *p, const char *message);
bool mgl_ptx_at(const mgl_ptx_parser *p, const char *word);
/* Goes behind the word, which must be there. */
mgl_status mgl_ptx_expect(mgl_ptx_parser *p, const char *word, const char *message);
/* An integer of any base. False: it is none. */
bool mgl_ptx_integer(mgl_ptx_slice word, int64_t *out);
/* Goes behind what `until` ends, with all brackets in between closed. */
mgl_status mgl_ptx_skip(mgl_ptx_parser *p, const char *until);

/* At a state space. Declares variables up to the semicolon, or one up to a comma or parenthesis. */
mgl_status mgl_ptx_parse_variables(mgl_ptx_parser *p, mgl_ptx_declaration declaration);
bool mgl_ptx_at_space(const mgl_ptx_parser *p, mgl_ptx_space *out);
/* A block, from its brace to behind the other. */
mgl_status mgl_ptx_parse_body(mgl_ptx_parser *p);

/* Makes room for one more element of `list`. */
#define MGL_PTX_GROW(p, items, list)                                                               \
    (mgl_grow((void **)&(p)->ptx->items, &(p)->ptx->list.capacity, (p)->ptx->list.count,           \
              sizeof *(p)->ptx->items))

#endif
