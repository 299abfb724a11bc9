/*
 * Reader of the GGUF container, versions 2 and 3: metadata (keys with typed values), a list of
 * tensors, and the bytes of the tensors. All numbers are little-endian.
 *
 *     "GGUF"  u32 version  u64 tensors  u64 keys
 *     each key:     string, u32 type, value
 *     each tensor:  string, u32 dimensions, u64 extents[] (columns first), u32 type, u64 offset
 *     padding to general.alignment (default 32), then the tensors in the order of the list, each
 *     padded to the alignment
 *
 * A string is a u64 length and its bytes. An array is a u32 type of its items, a u64 count, and
 * the items. All arithmetic is overflow-checked. Rejected: other versions and types, arrays of
 * arrays, keys or names that occur twice or hold unprintable characters, extents that are 0 or no
 * whole blocks, offsets that differ from the sum of the sizes before, bytes after the last tensor.
 */
#ifndef MGL_IMPORTER_GGUF_CONTAINER_H
#define MGL_IMPORTER_GGUF_CONTAINER_H

#include "base/file.h"

#include <stdint.h>

/* The types of values, as numbered in the file. */
typedef enum mgl_gguf_type {
    MGL_GGUF_U8,
    MGL_GGUF_I8,
    MGL_GGUF_U16,
    MGL_GGUF_I16,
    MGL_GGUF_U32,
    MGL_GGUF_I32,
    MGL_GGUF_F32,
    MGL_GGUF_BOOL,
    MGL_GGUF_STRING,
    MGL_GGUF_ARRAY,
    MGL_GGUF_U64,
    MGL_GGUF_I64,
    MGL_GGUF_F64,
    MGL_GGUF_TYPE_COUNT
} mgl_gguf_type;

/* A string in the file, not 0-terminated. */
typedef struct mgl_gguf_string {
    const char *bytes;
    size_t length;
} mgl_gguf_string;

typedef struct mgl_gguf_value {
    mgl_gguf_string key;
    mgl_gguf_type type; /* of the value, or of each item of an array */
    bool is_array;
    size_t count;             /* items; 1 if the value is not an array */
    const unsigned char *at;  /* the first item */
    const unsigned char *end; /* after the last item */
} mgl_gguf_value;

enum { MGL_GGUF_RANK = 4 };

typedef struct mgl_gguf_tensor {
    mgl_gguf_string name;
    const char *type; /* "Q4_1"; static storage */
    int rank;
    int64_t shape[MGL_GGUF_RANK]; /* (rank): rows first, as in safetensors */
    size_t offset, bytes;         /* relative to the start of the data */
} mgl_gguf_tensor;

typedef struct mgl_gguf {
    char *file;             /* owned: for messages */
    unsigned char *header;  /* owned: the bytes that strings and values point into; NULL: not */
    mgl_gguf_value *values; /* owned (value_count), sorted by key */
    size_t value_count, value_capacity;
    mgl_gguf_tensor *tensors; /* owned (tensor_count), in the order of the file */
    size_t tensor_count, tensor_capacity;
    size_t data; /* offset of the data in the file */
} mgl_gguf;

/* Sets *stands if MODEL at this path is meant as a GGUF file: a regular file whose name ends in
 * .gguf, or that begins with the magic bytes. */
mgl_status mgl_gguf_stands(const char *path, bool *stands, mgl_error *err);

/* Reads the header of a file. Release with mgl_gguf_close. */
mgl_status mgl_gguf_open(const char *path, mgl_gguf **out, mgl_error *err);
void mgl_gguf_close(mgl_gguf *gguf); /* NULL is fine */

/* Parses a header from memory: `bytes` are the first `length` of a file of `file_bytes` bytes, and
 * must outlive *out. *more becomes true, with an error, if the header continues after `length`. */
mgl_status mgl_gguf_parse(const unsigned char *bytes, size_t length, size_t file_bytes,
                          const char *file, mgl_gguf **out, bool *more, mgl_error *err);

/* ---- values ---------------------------------------------------------------------------------- */

/* Returns the value of a key, or NULL. */
const mgl_gguf_value *mgl_gguf_find(const mgl_gguf *gguf, const char *key);

/* Each sets *out if the key exists; else *out is unchanged. A value of another type, or outside
 * [low, high], is an error. */
mgl_status mgl_gguf_get_int(const mgl_gguf *gguf, const char *key, int64_t low, int64_t high,
                            int64_t *out, mgl_error *err);
mgl_status mgl_gguf_get_float(const mgl_gguf *gguf, const char *key, double *out, mgl_error *err);
mgl_status mgl_gguf_get_bool(const mgl_gguf *gguf, const char *key, bool *out, mgl_error *err);
mgl_status mgl_gguf_get_string(const mgl_gguf *gguf, const char *key, mgl_gguf_string *out,
                               mgl_error *err);

/* Same for arrays: the strings of a key in a new array (*count), NULL if the key does not exist.
 * Release with mgl_free. */
mgl_status mgl_gguf_get_strings(const mgl_gguf *gguf, const char *key, mgl_gguf_string **out,
                                size_t *count, mgl_error *err);
/* Same for numbers, which are whole: as int64_t; or of F32: as float. */
mgl_status mgl_gguf_get_ints(const mgl_gguf *gguf, const char *key, int64_t **out, size_t *count,
                             mgl_error *err);
mgl_status mgl_gguf_get_floats(const mgl_gguf *gguf, const char *key, float **out, size_t *count,
                               mgl_error *err);

/* Whether a string in the file is this text. */
bool mgl_gguf_is(mgl_gguf_string string, const char *text);

/* Returns the tensor of that name, or NULL. */
const mgl_gguf_tensor *mgl_gguf_find_tensor(const mgl_gguf *gguf, const char *name);

#endif
