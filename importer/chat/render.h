/*
 * Internal header of the interpreter: the state of a rendering, its limits and scopes, and the
 * functions of all its files. A function that fails returns false or NULL, after mgl_render_fail
 * or a similar function recorded the error.
 */
#ifndef MGL_IMPORTER_CHAT_RENDER_H
#define MGL_IMPORTER_CHAT_RENDER_H

#include "importer/chat/arena.h"
#include "importer/chat/string.h"
#include "importer/chat/syntax.h"

/* Limits, so that a hostile template ends soon. A normal template needs a thousandth of them. */
enum {
    MGL_CHARACTER_COST = 8, /* bytes of text that cost as much as classifying a character */
    MGL_JINJA_STEPS = 8 * 1000 * 1000, /* evaluated nodes, and pieces of 64 bytes of text */
    MGL_JINJA_DEPTH = 800,             /* nesting depth, including macro calls */
    MGL_JINJA_MEMORY = 256 << 20,      /* bytes of all values, without the messages' own text */
    MGL_JINJA_OUTPUT = 64 << 20,       /* bytes of a text */
    MGL_JINJA_RANGE = 100 * 1000       /* items of a range; the limit of Jinja's sandbox */
};

typedef struct mgl_binding {
    uint32_t name; /* symbol */
    mgl_value value;
} mgl_binding;

/* The variables of a block. */
typedef struct mgl_scope {
    struct mgl_scope *parent;
    mgl_binding *items; /* (count) */
    size_t count, capacity;
    bool captured; /* a macro or caller refers to this scope */
} mgl_scope;

struct mgl_macro {
    const mgl_syntax *definition; /* MACRO or CALL_BLOCK */
    mgl_scope *scope;             /* the scope of its definition */
};

struct mgl_method {
    mgl_value object;
    int row; /* row of methods.def */
};

/* A for loop in progress; the value of the variable `loop`. */
struct mgl_loop {
    mgl_walk walk;
    const mgl_syntax *filter; /* the condition in the loop's head; or NULL */
    const mgl_syntax *target; /* of the filter */
    mgl_scope *scope;         /* the enclosing scope */
    mgl_list *ahead;          /* items that were read ahead; or NULL */
    size_t ahead_next;
    mgl_value current, before, changed;
    int64_t index0; /* -1: not begun */
    int64_t length; /* -1: not known yet */
    bool has_changed;
};

typedef enum mgl_flow { MGL_FLOW_ON, MGL_FLOW_BREAK, MGL_FLOW_CONTINUE } mgl_flow;

struct mgl_render {
    const mgl_jinja *jinja;
    mgl_arena memory;
    int64_t steps;        /* remaining steps */
    int depth;            /* nesting depth */
    const mgl_syntax *at; /* the node that an error refers to */
    mgl_scope *scope;     /* the innermost */
    mgl_sink *sink;       /* receives the printed text */
    mgl_flow flow;        /* break or continue in progress */
    mgl_status status;    /* status of the failure */
    mgl_error *err;
};

/* Records an error: the position in the template, the message, and the source line with a caret.
 * Returns false. */
bool mgl_render_fail(mgl_render *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Same, for a value that is undefined but is needed. */
bool mgl_render_fail_undefined(mgl_render *r, mgl_value value);
void *mgl_render_take(mgl_render *r, size_t bytes); /* NULL: failed */
/* Grows an array of `count` items of `size` bytes by doubling; *items stays valid on failure. */
bool mgl_render_grow(mgl_render *r, void **items, size_t *capacity, size_t count, size_t size);
/* Charges for reading or writing this many bytes of text. */
bool mgl_render_spend(mgl_render *r, size_t bytes);
/* Enters a nested node; call mgl_render_leave after success. */
bool mgl_render_enter(mgl_render *r);
static inline void mgl_render_leave(mgl_render *r)
{
    r->depth--;
}

/* ---- evaluating ------------------------------------------------------------------------------ */

bool mgl_evaluate(mgl_render *r, const mgl_syntax *expression, mgl_value *out);
bool mgl_execute(mgl_render *r, const mgl_syntax *statements);
/* Executes the statements in their own scope; *out is the text that they print. */
bool mgl_capture(mgl_render *r, const mgl_syntax *statements, mgl_scope *scope, mgl_value *out);

bool mgl_operate(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value b, mgl_value *out);
bool mgl_operate_unary(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value *out);
bool mgl_compare(mgl_render *r, mgl_operator operation, mgl_value a, mgl_value b, bool *out);

/* Applies a filter of the tree to a value; evaluates the text of a call block. */
bool mgl_evaluate_filter(mgl_render *r, const mgl_syntax *filter, mgl_value input, mgl_value *out);
bool mgl_evaluate_call_block(mgl_render *r, const mgl_syntax *block, mgl_value *out);

/* object.name and object[key], with the fallbacks of Python and Jinja. */
bool mgl_attribute(mgl_render *r, mgl_value object, const char *name, size_t length,
                   mgl_value *out);
bool mgl_item(mgl_render *r, mgl_value object, mgl_value key, mgl_value *out);
bool mgl_slice(mgl_render *r, mgl_value object, const mgl_value bounds[3], mgl_value *out);

/* ---- scopes ---------------------------------------------------------------------------------- */

mgl_scope *mgl_scope_new(mgl_render *r, mgl_scope *parent); /* NULL: failed */
bool mgl_scope_set(mgl_render *r, mgl_scope *scope, uint32_t name, mgl_value value);
const mgl_value *mgl_scope_find(mgl_render *r, const mgl_scope *scope, uint32_t name);

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct mgl_keyword {
    const char *name; /* (length) */
    size_t length;
    mgl_value value;
} mgl_keyword;

typedef struct mgl_arguments {
    mgl_value *values; /* (count) */
    size_t count, capacity;
    mgl_keyword *keywords; /* (keyword_count) */
    size_t keyword_count, keyword_capacity;
} mgl_arguments;
bool mgl_arguments_add(mgl_render *r, mgl_arguments *arguments, mgl_value value);
bool mgl_arguments_add_keyword(mgl_render *r, mgl_arguments *arguments, const char *name,
                               size_t length, mgl_value value);

enum { MGL_PARAMETERS = 4 }; /* the most that a filter, test, method or function has */

/* Arguments, by parameter. */
typedef struct mgl_bound {
    mgl_value values[MGL_PARAMETERS]; /* UNDEFINED if not given */
    bool given[MGL_PARAMETERS];
    const mgl_arguments *all; /* for callables with any number of arguments */
} mgl_bound;

/* The signature of a filter, test, method or function. */
typedef struct mgl_callable {
    const char *name;
    bool (*call)(mgl_render *r, mgl_value object, const mgl_bound *bound, mgl_value *out);
    const char *parameters; /* names separated by spaces; "*": any arguments, positional or
                             * keyword */
    size_t required;        /* number of required parameters, from the left */
} mgl_callable;
/* Returns the row of this name in a table; -1: none. */
int mgl_callable_find(const mgl_callable *table, size_t count, const char *name, size_t length);
bool mgl_callable_call(mgl_render *r, const mgl_callable *callable, const char *kind,
                       mgl_value object, const mgl_arguments *arguments, mgl_value *out);

bool mgl_call(mgl_render *r, mgl_value callee, const mgl_arguments *arguments, mgl_value *out);

/* Return the row of a table by name, or -1. */
int mgl_filter_find(const char *name, size_t length);
int mgl_test_find(const char *name, size_t length);
int mgl_function_find(const char *name, size_t length);
/* Returns the method of a kind of values, or -1. *unsafe: the method exists, but the sandbox
 * hides it. */
int mgl_method_find(mgl_value_kind kind, const char *name, size_t length, bool *unsafe);

bool mgl_filter_call(mgl_render *r, int row, mgl_value input, const mgl_arguments *arguments,
                     mgl_value *out);
bool mgl_test_call(mgl_render *r, int row, mgl_value input, const mgl_arguments *arguments,
                   bool *out);
bool mgl_function_call(mgl_render *r, int row, const mgl_arguments *arguments, mgl_value *out);
bool mgl_method_call(mgl_render *r, const mgl_method *method, const mgl_arguments *arguments,
                     mgl_value *out);

/* Reads an attribute of a loop: loop.NAME; *found false: no such attribute. */
bool mgl_loop_attribute(mgl_render *r, mgl_loop *loop, const char *name, size_t length,
                        mgl_value *out, bool *found);
bool mgl_loop_next(mgl_render *r, mgl_loop *loop, bool *end);
bool mgl_loop_peek(mgl_render *r, mgl_loop *loop, mgl_value *out, bool *end);
bool mgl_loop_length(mgl_render *r, mgl_loop *loop, int64_t *out);

/* Check the type of an argument of a filter, method or function; the error names the parameter. */
bool mgl_want_string(mgl_render *r, const char *what, mgl_value value, mgl_string **out);
bool mgl_want_integer(mgl_render *r, const char *what, mgl_value value, int64_t *out);
/* Options for JSON output, as of Python's json.dumps. */
typedef struct mgl_dump {
    bool ascii, sorted;
    const char *indent; /* (indent_length); NULL: one line */
    size_t indent_length;
    const mgl_string *between, *colon; /* NULL: the default separators */
} mgl_dump;
bool mgl_value_dump(mgl_render *r, mgl_sink *sink, mgl_value value, const mgl_dump *how);
/* Format with "%s" % values, and with str.format. */
bool mgl_format_percent(mgl_render *r, const mgl_string *format, mgl_value values, mgl_value *out);
bool mgl_format_braces(mgl_render *r, const mgl_string *format, const mgl_arguments *arguments,
                       mgl_value *out);
/* int() and float() of a string; false: not a number. */
bool mgl_string_to_real(const mgl_string *string, double *out);
bool mgl_string_to_integer(mgl_render *r, const mgl_string *string, int base, mgl_value *out,
                           bool *good);
/* int() of a real number; a result beyond 64 bits is a LARGE value. */
bool mgl_real_to_integer(mgl_render *r, double real, mgl_value *out);

#endif
