/*
 * Values of a template, with Python's types and semantics. Strings are immutable UTF-8. Lists
 * and dicts are mutable (append, pop) and are shared by reference. All values are in the arena
 * of a rendering or of a template.
 */
#ifndef MGL_IMPORTER_CHAT_VALUE_H
#define MGL_IMPORTER_CHAT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mgl_render mgl_render;

/*  kind, name of the type in Python */
#define MGL_VALUE_KINDS(X)                                                                         \
    X(UNDEFINED, "Undefined")                                                                      \
    X(NONE, "NoneType")                                                                            \
    X(BOOL, "bool")                                                                                \
    X(INTEGER, "int")                                                                              \
    X(LARGE, "int") /* beyond 64 bits: stored as digits */                                         \
    X(REAL, "float")                                                                               \
    X(STRING, "str")                                                                               \
    X(LIST, "list")                                                                                \
    X(TUPLE, "tuple")                                                                              \
    X(DICT, "dict")                                                                                \
    X(VIEW, "dict view")      /* of keys, values or items */                                       \
    X(GENERATOR, "generator") /* the rest of a list that can be read only once */                  \
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

/* A buffer for growing strings. A string that ends at the end of the used bytes can be extended
 * in place. */
typedef struct mgl_buffer {
    char *bytes;
    size_t used, capacity;
} mgl_buffer;

typedef struct mgl_string {
    const char *bytes;  /* (length) UTF-8, not 0-terminated; may contain U+0000 */
    size_t length;      /* bytes */
    size_t characters;  /* SIZE_MAX: not counted yet */
    mgl_buffer *buffer; /* the buffer that contains it, or NULL */
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
    bool markup; /* for STRING: see markup.h */
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
        mgl_missing *missing;     /* UNDEFINED; NULL: without a reason */
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
    mgl_entry *entries; /* (count), in insertion order */
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

/* Why a value is undefined. The message is made only when it is needed. */
struct mgl_missing {
    enum {
        MGL_MISSING_NAME,      /* no variable has this name */
        MGL_MISSING_ATTRIBUTE, /* the object has no such attribute or key */
        MGL_MISSING_UNSAFE,    /* Hugging Face's sandbox hides it */
        MGL_MISSING_REASON     /* `name` is the whole message */
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

const char *mgl_value_type(mgl_value value); /* its type name in Python */
bool mgl_value_truth(mgl_value value);
/* Reads a bool or a 64-bit integer (in Python, bool is an integer type). */
bool mgl_value_is_whole(mgl_value value, int64_t *out);
/* Same, and real numbers. */
bool mgl_value_is_number(mgl_value value, double *out);
/* len(); false: the value has no length. */
bool mgl_value_length(mgl_value value, size_t *out);

/* Functions with a mgl_render parameter return false on failure; it then has the error. */

/* a == b, and a < b. */
bool mgl_value_equal(mgl_render *r, mgl_value a, mgl_value b, bool *out);
bool mgl_value_less(mgl_render *r, mgl_value a, mgl_value b, bool *out);
/* needle in hay. */
bool mgl_value_contains(mgl_render *r, mgl_value hay, mgl_value needle, bool *out);

/* Writes the message into `to`. */
void mgl_missing_tell(const mgl_missing *missing, char *to, size_t size);
bool mgl_missing_make(mgl_render *r, int why, const char *type, const char *name, size_t length,
                      mgl_value *out);

/* ---- lists and dicts ------------------------------------------------------------------------- */

mgl_list *mgl_list_new(mgl_render *r, size_t capacity); /* NULL: failed */
bool mgl_list_add(mgl_render *r, mgl_list *list, mgl_value value);
bool mgl_tuple_new(mgl_render *r, const mgl_value *items, size_t count, mgl_value *out);

mgl_dict *mgl_dict_new(mgl_render *r, size_t capacity); /* NULL: failed */
/* Finds the entry of a key; NULL: none. Fails if Python cannot hash the key. */
bool mgl_dict_find(mgl_render *r, const mgl_dict *dict, mgl_value key, mgl_entry **out);
mgl_entry *mgl_dict_find_bytes(mgl_render *r, const mgl_dict *dict, const char *key, size_t length);
bool mgl_dict_set(mgl_render *r, mgl_dict *dict, mgl_value key, mgl_value value);
/* Same, for a key that is known to be new. */
bool mgl_dict_add(mgl_render *r, mgl_dict *dict, mgl_value key, mgl_value value);

/* ---- iteration ------------------------------------------------------------------------------- */

typedef struct mgl_walk {
    mgl_value over;
    size_t next; /* index; for a string, byte offset */
} mgl_walk;
bool mgl_walk_start(mgl_render *r, mgl_value over, mgl_walk *out); /* fails if not iterable */
bool mgl_walk_next(mgl_render *r, mgl_walk *walk, mgl_value *out, bool *end);
/* Collects all items in a new list. */
mgl_list *mgl_list_of(mgl_render *r, mgl_value over); /* NULL: failed */

#endif
