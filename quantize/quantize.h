/*
 * Quantizes a checkpoint: reads a folder in Hugging Face layout and writes a new folder in the
 * layout of compressed-tensors. The matrices of the layers are rounded to nearest (round.h), and
 * the head too if the caller asks for it. All other tensors are copied. `megalith quantize` calls
 * this.
 *
 * Matrices are read, rounded and written by parts, so the memory does not depend on the size of
 * the model. The files get their names when all of them are complete; config.json is the last.
 */
#ifndef MGL_QUANTIZE_QUANTIZE_H
#define MGL_QUANTIZE_QUANTIZE_H

#include "base/error.h"
#include "base/weight_format.h"

/* The default of shard_bytes, as in Transformers. */
#define MGL_QUANTIZE_SHARD_BYTES 5000000000u

/* Is called after each part of the work, on the calling thread, with the weight bytes that have
 * been read. Any other status than MGL_OK ends the work. */
typedef mgl_status mgl_quantize_step_fn(void *user, uint64_t done, uint64_t total, mgl_error *err);

/*  enum  name    meaning */
#define MGL_QUANTIZE_METHODS(X)                                                                    \
    X(RTN, "rtn", "round to nearest; a scale is the largest magnitude / the largest code")         \
    X(CLIP, "clip", "the same with the scale that has the least squared error (clipping search)")  \
    X(GPTQ, "gptq", "the output error of the columns so far is compensated; needs samples")

typedef enum mgl_quantize_method {
#define MGL_X(id, name, meaning) MGL_METHOD_##id,
    MGL_QUANTIZE_METHODS(MGL_X)
#undef MGL_X
        MGL_METHOD_COUNT
} mgl_quantize_method;

const char *mgl_quantize_method_name(mgl_quantize_method method);
bool mgl_quantize_method_parse(const char *name, mgl_quantize_method *out);

/* Is told the bytes of memory that a calibration needs, and the available bytes (0: not known). */
typedef void mgl_quantize_memory_fn(void *user, uint64_t bytes, uint64_t available);

typedef struct mgl_quantize_request {
    mgl_quantize_method method;
    const mgl_ids
        *samples;        /* (sample_count) texts for the calibration: sequences from position 0 */
    size_t sample_count; /* 0: no calibration, which GPTQ and bits_per_weight need */
    double bits_per_weight; /* 0, or layers.code is INT4: the most sensitive matrices of the layers
                             * get INT8, up to this mean with scales and zero points */
    double time_limit_s;    /* of the calibration; 0: none. At the limit: MGL_WATCHDOG. At least one
                             * half of a layer is finished */
    double deadline_s;      /* the time of mgl_clock_s at the limit; set by mgl_quantize */
    mgl_weight_format layers;   /* a scaled format with group_rows 1 */
    mgl_weight_format head;     /* the same, or code F32: the head is not quantized */
    bool own_scales;            /* the dtype of the scales is the dtype of each matrix; the field
                                 * `scales` of the formats is ignored */
    uint64_t shard_bytes;       /* largest bytes of tensors in a file; 0: the default */
    mgl_quantize_step_fn *step; /* may be NULL */
    mgl_quantize_memory_fn *memory; /* may be NULL */
    void *user;
} mgl_quantize_request;

/* Returns the default texts for samples, 0-terminated UTF-8. Static storage. */
const char *const *mgl_quantize_texts(size_t *count);

typedef struct mgl_quantize_report {
    uint64_t read, written;  /* bytes of all tensors in the two folders */
    uint64_t weights, codes; /* weights of the quantized matrices, and their bytes
                              * (mgl_matrix_bytes) */
    int matrices;            /* quantized matrices in the files */
    int wide;                /* of these, matrices with 8 bits because of bits_per_weight */
    int files;               /* safetensors files */
    bool untied;             /* the head was tied to the embedding, and is now its own matrix */
} mgl_quantize_report;

/* Quantizes the model at `path` (mgl_model_find) into `folder`, which must not exist or be empty.
 * MGL_BAD_INPUT: the model is quantized or compiled already, or a matrix does not fit the format.
 * After a failure, no file is left in the folder, and a folder that was created is removed. Only
 * the finished layers of a calibration are left (results.h): the same call continues after them. */
mgl_status mgl_quantize(const char *path, const mgl_quantize_request *request, const char *folder,
                        mgl_quantize_report *report, mgl_error *err);

/* Writes the version of OpenBLAS to `to`, which has `size` bytes, as a string. On failure, for
 * example if OpenBLAS or LAPACKE is not installed, `to` becomes an empty string. */
mgl_status mgl_quantize_blas_version(char *to, size_t size, mgl_error *err);

#endif
