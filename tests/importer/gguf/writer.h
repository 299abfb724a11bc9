/*
 * Writes GGUF files for tests: a container of given keys and tensors, and a model in Hugging Face
 * layout as a GGUF file.
 */
#ifndef MGL_TESTS_GGUF_WRITER_H
#define MGL_TESTS_GGUF_WRITER_H

#include "base/text.h"

#include <stdint.h>

/* Types of values. */
enum { GGUF_U32 = 4, GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_STRING = 8, GGUF_ARRAY = 9 };

typedef struct gguf_writer {
    mgl_text keys, tensors, data;
    uint64_t key_count, tensor_count;
    uint32_t version;   /* 0: 3 */
    uint32_t alignment; /* 0: 32 */
} gguf_writer;

void gguf_put(mgl_text *to, const void *bytes, size_t length);
void gguf_put_u32(mgl_text *to, uint32_t value);
void gguf_put_u64(mgl_text *to, uint64_t value);
void gguf_put_text(mgl_text *to, const char *text);

void gguf_key_u32(gguf_writer *w, const char *key, uint32_t value);
void gguf_key_f32(gguf_writer *w, const char *key, float value);
void gguf_key_bool(gguf_writer *w, const char *key, bool value);
void gguf_key_text(gguf_writer *w, const char *key, const char *value);
void gguf_key_texts(gguf_writer *w, const char *key, const char *const *values, size_t count);
void gguf_key_i32s(gguf_writer *w, const char *key, const int32_t *values, size_t count);
void gguf_key_f32s(gguf_writer *w, const char *key, const float *values, size_t count);

/* Adds a tensor of rank 1 (rows 0) or 2. */
void gguf_tensor(gguf_writer *w, const char *name, uint32_t type, uint64_t rows, uint64_t columns,
                 const void *bytes, size_t length);

/* Writes the file; releases the writer. */
bool gguf_finish(gguf_writer *w, const char *path);

/* The number in ggml and the size of blocks of a type. */
typedef struct gguf_block {
    const char *name;
    uint32_t number;
    size_t weights, bytes;
} gguf_block;
const gguf_block *gguf_find_block(const char *name);
/* Weight `i` of a block, by the definition of its type. */
float gguf_block_number(const gguf_block *type, const uint8_t *block, size_t i);
/* Rounds weights to blocks. gguf_block_number gives the rounded numbers. */
void gguf_quantize(const gguf_block *type, const float *weights, size_t count, uint8_t *to);

/* A model as a GGUF file. */
typedef struct gguf_model {
    const char *folder;                     /* in Hugging Face layout */
    const char *architecture;               /* NULL: llama, whose q and k are permuted */
    const char *matrices;                   /* type of matrices in layers */
    const char *table;                      /* type of the embedding table; NULL: as matrices */
    const char *down;                       /* type of mlp.down_proj; NULL: as matrices */
    const char *skip_key;                   /* a key that is left out */
    const char *replace_key, *replace_text; /* a text key with another value */
    float theta;                            /* 0: 10,000 */
    bool no_tokenizer;
    void (*more)(gguf_writer *w); /* adds keys and tensors */
} gguf_model;

bool gguf_write_model(const gguf_model *model, const char *path);

#endif
