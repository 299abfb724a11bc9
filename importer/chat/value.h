/*
 * Values of a template, as Python has them. Strings are UTF-8 and never change; lists and dicts can
 * (append, pop), and are shared by those who hold them. Everything lies in the arena of a rendering
 * or of a template.
 */
#ifndef MGL_IMPORTER_CHAT_VALUE_H
#define MGL_IMPORTER_CHAT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mgl_render mgl_render;

/*  kind, the name of its type in Python */
#define MGL_VALUE_KINDS(X)                                                                         \
    X(UNDEFINED, "Undefined")                                                                      \
    X(NONE, "NoneType")                                                                            \
    X(BOOL, "bool")                                                                                \
    X(INTEGER, "int")                                                                              \
    X(LARGE, "int") /* beyond 64 bits: its digits */                                               \
    X(REAL, "float")                                                                               \
    X(STRING, "str")                                                                               \
    X(LIST, "list")                                                                                \
    X(TUPLE, "tuple")                                                                              \
    X(DICT, "dict")                                                                                \
    X(VIEW, "dict view")      /* of keys, values or items */                                       \
    X(GENERATOR, "generator") /* what is left of a list that is read once */                       \
    X(RANGE, "range")                                                                              \
    X(NAMESPACE, "Namespace")                                                                      \
    X(LOOP, "LoopContext")                                                                         \
    X(MACRO, "Macro")                                                                              \
    X(FUNCTION, "function")                                                                        \
    X(METHOD, "method")

typedef enum mgl_value_kind {
#define MGL_X(kind, name) MGL_VALUE_##kind,
    MGL_VALUE_KINDS(MGL_X)
#undef MGL_X
} mgl_value_kind;

/* Bytes that strings grow in. One that ends where the used bytes end can be extended in place. */
typedef struct mgl_buffer {
    char *bytes;
    size_t used, capacity;
} mgl_buffer;

typedef struct mgl_string {
    const char *bytes;  /* (length) UTF-8, no 0 behind them; may hold U+0000 */
    size_t length;      /* bytes */
    size_t characters;  /* SIZE_MAX: not counted yet */
    mgl_buffer *buffer; /* that it lies in, or NULL */
} mgl_string;

typedef struct mgl_list mgl_list;
typedef struct mgl_dict mgl_dict;
typedef struct mgl_steps mgl_steps;
typedef struct mgl_view mgl_view;
typedef struct mgl_generator mgl_generator;
typedef struct mgl_missing mgl_missing;
typedef struct mgl_macro mgl_macro;
typedef struct mgl_method mgl_method;
typedef struct mgl_loop mgl_loop;

typedef struct mgl_value {
    mgl_value_kind kind;
    bool markup; /* of STRING: see markup.h */
    union {
        bool flag;                /* BOOL */
        int64_t integer;          /* INTEGER; FUNCTION: its row in functions.def */
        double real;              /* REAL */
        mgl_string *string;       /* STRING; LARGE: sign and digits */
        mgl_list *list;           /* LIST, TUPLE */
        mgl_dict *dict;           /* DICT, NAMESPACE */
        mgl_view *view;           /* VIEW */
        mgl_generator *generator; /* GENERATOR */
        mgl_steps *steps;         /* RANGE */
        mgl_missing *missing;     /* UNDEFINED; NULL: of no name */
        mgl_macro *macro;         /* MACRO */
        mgl_method *method;       /* METHOD */
        mgl_loop *loop;           /* LOOP */
    };
} mgl_value;

struct mgl_list {
    mgl_value *items; /* (count) */
    size_t count, capacity;
};

typedef struct mgl_entry {
    mgl_value key, value;
} mgl_entry;

struct mgl_dict {
    mgl_entry *entries; /* (count), in the order in which they came */
    size_t count, capacity;
};

struct mgl_view {
    mgl_dict *dict;
    enum { MGL_VIEW_KEYS, MGL_VIEW_VALUES, MGL_VIEW_ITEMS } which;
};

struct mgl_generator {
    mgl_list *list;
    size_t next;
};

struct mgl_steps {
    int64_t start, stop, step, count;
};

/* Why something is undefined: the sentence is made when somebody asks. */
struct mgl_missing {
    enum {
        MGL_MISSING_NAME,      /* no variable has this name */
        MGL_MISSING_ATTRIBUTE, /* the object has no such attribute or key */
        MGL_MISSING_UNSAFE,    /* Hugging Face's sandbox hides it */
        MGL_MISSING_REASON     /* `name` is a sentence */
    } why;
    const char *type; /* of the object */
    const char *name; /* (length) */
    size_t length;
};

static inline mgl_value mgl_none(void)
{
    return (mgl_value){.kind = MGL_VALUE_NONE};
}
static inline mgl_value mgl_bool(bool flag)
{
    return (mgl_value){.kind = MGL_VALUE_BOOL, .flag = flag};
}
static inline mgl_value mgl_integer(int64_t integer)
{
    return (mgl_value){.kind = MGL_VALUE_INTEGER, .integer = integer};
}
static inline mgl_value mgl_real(double real)
{
    return (mgl_value){.kind = MGL_VALUE_REAL, .real = real};
}
static inline mgl_value mgl_of_string(mgl_string *string)
{
    return (mgl_value){.kind = MGL_VALUE_STRING, .string = string};
}
static inline mgl_value mgl_of_list(mgl_list *list)
{
    return (mgl_value){.kind = MGL_VALUE_LIST, .list = list};
}
static inline mgl_value mgl_of_dict(mgl_dict *dict)
{
    return (mgl_value){.kind = MGL_VALUE_DICT, .dict = dict};
}

const char *mgl_value_type(mgl_value value); /* its name in Python */
bool mgl_value_truth(mgl_value value);
/* A bool or an integer of 64 bits, as Python's bool is one. */
bool mgl_value_is_whole(mgl_value value, int64_t *out);
/* The same, and reals. */
bool mgl_value_is_number(mgl_value value, double *out);
/* len(); false: it has none. */
bool mgl_value_length(mgl_value value, size_t *out);

/* Functions that take a rendering fail through it: false, and it says why. */

/* ==, and the order of <. */
bool mgl_value_equal(mgl_render *r, mgl_value a, mgl_value b, bool *out);
bool mgl_value_less(mgl_render *r, mgl_value a, mgl_value b, bool *out);
/* `needle in hay`. */
bool mgl_value_contains(mgl_render *r, mgl_value hay, mgl_value needle, bool *out);

/* Why, in words: into `to`. */
void mgl_missing_tell(const mgl_missing *missing, char *to, size_t size);
bool mgl_missing_make(mgl_render *r, int why, const char *type, const char *name, size_t length,
                      mgl_value *out);

/* ---- lists and dicts ------------------------------------------------------------------------- */

mgl_list *mgl_list_new(mgl_render *r, size_t capacity); /* NULL: failed */
bool mgl_list_add(mgl_render *r, mgl_list *list, mgl_value value);
bool mgl_tuple_new(mgl_render *r, const mgl_value *items, size_t count, mgl_value *out);

mgl_dict *mgl_dict_new(mgl_render *r, size_t capacity); /* NULL: failed */
/* The entry of a key, NULL: none. A key that Python can not hash fails. */
bool mgl_dict_find(mgl_render *r, const mgl_dict *dict, mgl_value key, mgl_entry **out);
mgl_entry *mgl_dict_find_bytes(mgl_render *r, const mgl_dict *dict, const char *key, size_t length);
bool mgl_dict_set(mgl_render *r, mgl_dict *dict, mgl_value key, mgl_value value);
/* The same of a key that is not there yet. */
bool mgl_dict_add(mgl_render *r, mgl_dict *dict, mgl_value key, mgl_value value);

/* ---- walking --------------------------------------------------------------------------------- */

typedef struct mgl_walk {
    mgl_value over;
    size_t next; /* index, or byte of a string */
} mgl_walk;
bool mgl_walk_start(mgl_render *r, mgl_value over, mgl_walk *out); /* fails: not iterable */
bool mgl_walk_next(mgl_render *r, mgl_walk *walk, mgl_value *out, bool *end);
/* All that a walk gives, in a new list. */
mgl_list *mgl_list_of(mgl_render *r, mgl_value over); /* NULL: failed */

#endif
