/*
 * Damaged and unsupported models, each made from one of two good ones (a single file, and two
 * shards with an index) by one edit. The tests of the library and of the command line and the tool
 * that writes them out share the table.
 */
#ifndef MGL_TESTS_DAMAGED_MODELS_H
#define MGL_TESTS_DAMAGED_MODELS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum edit_kind {
    NONE,    /* the good model */
    REPLACE, /* `from`, which must occur, by `to` in a text file; from NULL: the whole text */
    HEADER,  /* the same in the header of a safetensors file, whose length is set anew */
    PREFIX,  /* the length of the header becomes `number` */
    CUT,     /* `number` bytes are left of the file */
    GROW,    /* `number` zero bytes are added to the file */
    REMOVE,  /* the file is not there */
} edit_kind;

typedef struct damaged_model {
    const char *name; /* of the folder that is made */
    bool sharded;     /* which good model it is made from */
    edit_kind edit;
    const char *file, *from, *to;
    long long number;
    const char *message; /* stands in "where: message" of the error */
} damaged_model;

extern const damaged_model damaged_models[];
extern const size_t damaged_model_count;

/* Writes the model into `folder`, which is made. False when that fails or `from` does not occur. */
bool write_damaged_model(const damaged_model *model, const char *folder);

/* Is there nothing in the text that speaks to a terminal? Line ends are allowed. */
bool only_visible(const char *text);

#endif
