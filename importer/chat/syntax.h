/*
 * The syntax tree of a template. Each node has its position in the text. The tree is not
 * modified by rendering, so any number of threads can render the same template.
 */
#ifndef MGL_IMPORTER_CHAT_SYNTAX_H
#define MGL_IMPORTER_CHAT_SYNTAX_H

#include "importer/chat/arena.h"
#include "importer/chat/jinja.h"
#include "importer/chat/value.h"

/*  operator, its text; longer operators before their prefixes */
#define MGL_OPERATORS(X)                                                                           \
    X(POWER, "**")                                                                                 \
    X(FLOOR_DIVIDE, "//")                                                                          \
    X(EQUAL, "==")                                                                                 \
    X(UNEQUAL, "!=")                                                                               \
    X(AT_LEAST, ">=")                                                                              \
    X(AT_MOST, "<=")                                                                               \
    X(ADD, "+")                                                                                    \
    X(SUBTRACT, "-")                                                                               \
    X(MULTIPLY, "*")                                                                               \
    X(DIVIDE, "/")                                                                                 \
    X(MODULO, "%")                                                                                 \
    X(CONCATENATE, "~")                                                                            \
    X(GREATER, ">")                                                                                \
    X(LESS, "<")                                                                                   \
    X(LEFT_BRACKET, "[")                                                                           \
    X(RIGHT_BRACKET, "]")                                                                          \
    X(LEFT_PAREN, "(")                                                                             \
    X(RIGHT_PAREN, ")")                                                                            \
    X(LEFT_BRACE, "{")                                                                             \
    X(RIGHT_BRACE, "}")                                                                            \
    X(ASSIGN, "=")                                                                                 \
    X(DOT, ".")                                                                                    \
    X(COLON, ":")                                                                                  \
    X(PIPE, "|")                                                                                   \
    X(COMMA, ",")                                                                                  \
    X(SEMICOLON, ";")

typedef enum mgl_operator {
#define MGL_X(name, text) MGL_EXPR_##name,
    MGL_OPERATORS(MGL_X)
#undef MGL_X
        MGL_EXPR_COUNT,
    MGL_EXPR_IN, /* keywords, in comparisons */
    MGL_EXPR_NOT_IN
} mgl_operator;

typedef enum mgl_lexeme_kind {
    MGL_LEXEME_DATA,
    MGL_LEXEME_VARIABLE_BEGIN,
    MGL_LEXEME_VARIABLE_END,
    MGL_LEXEME_BLOCK_BEGIN,
    MGL_LEXEME_BLOCK_END,
    MGL_LEXEME_NAME,
    MGL_LEXEME_CONSTANT, /* a string or a number */
    MGL_LEXEME_OPERATOR,
    MGL_LEXEME_END
} mgl_lexeme_kind;

typedef struct mgl_lexeme {
    mgl_lexeme_kind kind;
    mgl_operator operation;
    uint32_t from, to; /* byte range in the text */
    uint32_t name;     /* symbol of a NAME */
    mgl_value value;   /* of a CONSTANT */
} mgl_lexeme;

/* Names with a meaning for the interpreter have fixed symbols. */
#define MGL_SYMBOLS(X) X(loop) X(caller) X(varargs) X(kwargs)
enum {
#define MGL_X(name) MGL_SYMBOL_##name,
    MGL_SYMBOLS(MGL_X)
#undef MGL_X
};

/*  kind, the meaning of a, b, c and d; lists are linked by `next` */
#define MGL_SYNTAX_KINDS(X)                                                                        \
    X(CONSTANT)        /* value */                                                                 \
    X(NAME)            /* name */                                                                  \
    X(LIST)            /* a: items */                                                              \
    X(TUPLE)           /* a: items */                                                              \
    X(DICT)            /* a: key, value, key, value ... */                                         \
    X(ATTRIBUTE)       /* a . name */                                                              \
    X(ITEM)            /* a [b] */                                                                 \
    X(SLICE)           /* a : b : c, each may be NULL */                                           \
    X(CALL)            /* a, b: arguments */                                                       \
    X(KEYWORD)         /* name = a */                                                              \
    X(SPREAD)          /* *a */                                                                    \
    X(SPREAD_KEYWORDS) /* **a */                                                                   \
    X(FILTER)          /* a | row, b: arguments; a may be NULL */                                  \
    X(TEST)            /* a is row, b: arguments */                                                \
    X(UNARY)           /* operation a */                                                           \
    X(BINARY)          /* a operation b */                                                         \
    X(COMPARE)         /* a, b: OPERANDs */                                                        \
    X(OPERAND)         /* operation a */                                                           \
    X(AND)             /* a and b */                                                               \
    X(OR)              /* a or b */                                                                \
    X(NOT)             /* not a */                                                                 \
    X(CHOICE)          /* a if b else c; c may be NULL */                                          \
    X(MEMBER)          /* name.value: a namespace's, as a target */                                \
    X(TEXT)            /* value */                                                                 \
    X(PRINT)           /* a */                                                                     \
    X(IF)              /* if a: b, else c */                                                       \
    X(FOR)             /* for a in b: c, else d, if filter: see `extra` */                         \
    X(SET)             /* a = b */                                                                 \
    X(SET_BLOCK)       /* a = b: statements, c: filters or NULL */                                 \
    X(MACRO)           /* name, a: PARAMETERs, b: statements */                                    \
    X(PARAMETER)       /* name, a: default or NULL */                                              \
    X(CALL_BLOCK)      /* c: CALL, a: PARAMETERs, b: statements */                                 \
    X(FILTER_BLOCK)    /* b: statements, c: filters */                                             \
    X(SCOPE)           /* b: statements */                                                         \
    X(WITH)            /* a: targets, c: values, b: statements */                                  \
    X(BREAK)                                                                                       \
    X(CONTINUE)

typedef enum mgl_syntax_kind {
#define MGL_X(kind) MGL_SYNTAX_##kind,
    MGL_SYNTAX_KINDS(MGL_X)
#undef MGL_X
} mgl_syntax_kind;

typedef struct mgl_syntax mgl_syntax;
struct mgl_syntax {
    mgl_syntax_kind kind;
    mgl_operator operation;
    uint32_t from, to; /* byte range in the text */
    uint32_t name;     /* symbol */
    int row;           /* row of filters.def or tests.def; NAME: of functions.def; -1: none */
    unsigned wants;    /* MACRO, CALL_BLOCK: bit 1 << symbol of each special name that is used */
    mgl_syntax *a, *b, *c, *d;
    mgl_syntax *extra; /* FOR: the condition in its head, or NULL */
    mgl_syntax *next;  /* next node of its list */
    mgl_value value;
};

typedef struct mgl_symbol_name {
    const char *bytes; /* (length) */
    size_t length;
} mgl_symbol_name;

struct mgl_jinja {
    char *file; /* owned: for messages */
    char *text; /* owned (length): line ends are \n */
    size_t length;
    mgl_arena memory;
    mgl_lexeme *lexemes; /* (lexeme_count), the last is END */
    size_t lexeme_count;
    mgl_symbol_name *symbols; /* (symbol_count) */
    size_t symbol_count, symbol_capacity;
    uint32_t *table; /* owned (table_size), open addressing: symbol + 1, 0: free */
    size_t table_size;
    mgl_syntax *body;
};

/* Fills the lexemes from the text. */
mgl_status mgl_jinja_lex(mgl_jinja *jinja, mgl_error *err);
/* Fills the body from the lexemes. */
mgl_status mgl_jinja_read(mgl_jinja *jinja, mgl_error *err);

/* Returns the symbol of a name, creating it if needed; UINT32_MAX: memory ran out. */
uint32_t mgl_jinja_symbol(mgl_jinja *jinja, const char *bytes, size_t length);
/* Returns the symbol of a name; UINT32_MAX: the template does not contain the name. */
uint32_t mgl_jinja_find_symbol(const mgl_jinja *jinja, const char *bytes, size_t length);

/* Returns MGL_BAD_INPUT with the message, and the source line with a caret under [from, to). */
mgl_status mgl_jinja_fail(const mgl_jinja *jinja, size_t from, size_t to, mgl_error *err,
                          const char *message);
/* Returns MGL_NO_MEMORY, or MGL_BAD_INPUT if the template is too large. */
mgl_status mgl_jinja_fail_memory(const mgl_jinja *jinja, mgl_error *err);

#endif
