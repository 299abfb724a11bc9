/*
 * Strict reader of the safetensors format: 8 bytes of header length (little-endian), a JSON header,
 * then the tensors' bytes, in one file or in shards listed in an index. All arithmetic is
 * overflow-checked. The following are rejected:
 *
 *     a header over 100 MB or past the end of the file, unknown header keys, duplicate names
 *     sizes that are not shape times dtype
 *     ranges with holes or overlaps, or that do not end at the end of the file
 *     shard names that leave the folder
 *
 * Tensors of any dtype and rank are listed; checkpoint.c checks which ones can be used.
 */
#ifndef MGL_IMPORTER_SAFETENSORS_H
#define MGL_IMPORTER_SAFETENSORS_H

#include "base/dtype.h"
#include "base/file.h"

enum { MGL_STORED_MAX_RANK = 8, MGL_SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000 };

/* One tensor of a file. */
typedef struct mgl_stored_tensor {
    char *name;               /* owned */
    const char *stored_dtype; /* the format's name, "BF16"; static storage */
    bool usable;              /* the dtype is one of F32, F16 and BF16 */
    mgl_dtype dtype;          /* when usable */
    int rank;
    int64_t shape[MGL_STORED_MAX_RANK]; /* (rank) */
    size_t offset, bytes;               /* relative to the end of the header */
    int file;                           /* index into mgl_safetensors.files */
} mgl_stored_tensor;

typedef struct mgl_stored_list {
    mgl_stored_tensor *items; /* (count) */
    size_t count, capacity;
} mgl_stored_list;

typedef struct mgl_stored_file {
    mgl_map *map;
    size_t data; /* offset of the first byte after the header */
} mgl_stored_file;

/* All tensors of a checkpoint, sorted by name. */
typedef struct mgl_safetensors {
    mgl_stored_list tensors;
    mgl_stored_file *files; /* (file_count); none: tensors are listed but cannot be read */
    int file_count;
} mgl_safetensors;

/* Appends the tensors of one header of `length` bytes to `list`. The header is followed by
 * `data_bytes` bytes in the file. `file` is for messages; `index` becomes the tensors' file. On
 * failure, tensors already appended stay in the list. */
mgl_status mgl_safetensors_parse_header(const char *header, size_t length, size_t data_bytes,
                                        const char *file, int index, mgl_stored_list *list,
                                        mgl_error *err);
void mgl_stored_list_clear(mgl_stored_list *list);

#define MGL_SAFETENSORS_SINGLE "model.safetensors"
#define MGL_SAFETENSORS_INDEX  "model.safetensors.index.json"

/* Opens model.safetensors of the folder, or else the shards of model.safetensors.index.json.
 * Release with mgl_safetensors_close. */
mgl_status mgl_safetensors_open(const char *folder, mgl_safetensors **out, mgl_error *err);
/* Lists the tensors of a header without a file; they cannot be read. `data_bytes` is the size of
 * the data that followed the header. */
mgl_status mgl_safetensors_list(const char *header, size_t length, size_t data_bytes,
                                const char *file, mgl_safetensors **out, mgl_error *err);
void mgl_safetensors_close(mgl_safetensors *files); /* NULL is fine */

/* Returns the index of the tensor of that name, or -1. */
int mgl_safetensors_find(const mgl_safetensors *files, const char *name);

/* Copies bytes [offset, offset + length) of a tensor. Thread safe. */
mgl_status mgl_safetensors_read(const mgl_safetensors *files, int tensor, size_t offset,
                                size_t length, void *to, mgl_error *err);

/* Copies `count` pieces of `length` bytes each: piece i starts at byte `offset` + i * `stride` of
 * the tensor, and is written behind piece i - 1. Thread safe. */
mgl_status mgl_safetensors_read_strided(const mgl_safetensors *files, int tensor, size_t offset,
                                        size_t length, size_t stride, size_t count, void *to,
                                        mgl_error *err);

/* Picks of elements of a tensor: `count` pieces, `stride` bytes apart from byte `offset` on, of
 * which elements places[0], places[1], ... (picks), of `size` bytes (2 or 4), are copied. */
typedef struct mgl_picks {
    size_t offset, size, stride, count, picks;
    const int32_t *places; /* not negative */
} mgl_picks;

/* Copies the picks of piece 0, then of piece 1, and so on. Thread safe. */
mgl_status mgl_safetensors_pick(const mgl_safetensors *files, int tensor, const mgl_picks *picks,
                                void *to, mgl_error *err);

#endif
