/*
 * Damaged and unsupported models. Each is made by one edit from one of two valid models: a single
 * file, or two shards with an index. The tests of the library and of the command line share the
 * table with the tool that writes the models.
 */
#ifndef MGL_TESTS_DAMAGED_MODELS_H
#define MGL_TESTS_DAMAGED_MODELS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum edit_kind {
    NONE,    /* the valid model */
    REPLACE, /* replaces `from`, which must occur, by `to` in a text file; from NULL: replaces the
                whole text */
    HEADER,  /* the same in the header of a safetensors file; its length is updated */
    PREFIX,  /* sets the length of the header to `number` */
    CUT,     /* cuts the file to `number` bytes */
    GROW,    /* appends `number` zero bytes to the file */
    REMOVE,  /* removes the file */
} edit_kind;

typedef struct damaged_model {
    const char *name; /* name of the folder */
    bool sharded;     /* which of the two valid models is edited */
    edit_kind edit;
    const char *file, *from, *to;
    long long number;
    const char *message; /* part of "where: message" of the error */
} damaged_model;

extern const damaged_model damaged_models[];
extern const size_t damaged_model_count;

/* Creates `folder` and writes the model into it. False if that fails or `from` does not occur. */
bool write_damaged_model(const damaged_model *model, const char *folder);

/* Whether the text has no terminal control characters except line ends. */
bool only_visible(const char *text);

#endif
