/*
 * The plan of a quantized checkpoint: which matrices are quantized, which tensors are written, and
 * the place of each in the files. Called by quantize.c.
 */
#ifndef MGL_QUANTIZE_PLAN_H
#define MGL_QUANTIZE_PLAN_H

#include "importer/checkpoint.h"
#include "importer/safetensors.h"
#include "quantize/quantize.h"

/* A part of a quantized matrix, or a copied tensor. */
typedef enum mgl_quantize_part {
    MGL_PART_COPY,
    MGL_PART_CODES,
    MGL_PART_SCALES,
    MGL_PART_ZEROS,
    MGL_PART_SHAPE,
    MGL_PART_COUNT
} mgl_quantize_part;

/* A tensor of the new folder. */
typedef struct mgl_planned_tensor {
    char *name; /* owned */
    mgl_quantize_part part;
    int source;        /* stored tensor that it is made of */
    const char *dtype; /* the format's name; static storage */
    int rank;
    int64_t shape[MGL_STORED_MAX_RANK]; /* (rank) */
    uint64_t bytes;
    int file;        /* number of the safetensors file */
    uint64_t offset; /* in the data of the file */
} mgl_planned_tensor;

/* What happens to a stored tensor. */
typedef struct mgl_planned_source {
    bool quantized, dropped;   /* neither: it is only copied */
    bool copied;               /* quantized: it is copied too (the embedding of a tied head) */
    bool is_head;              /* it is quantized as the head */
    mgl_weight_format format;  /* quantized */
    int parts[MGL_PART_COUNT]; /* tensors of the plan; -1: none */
} mgl_planned_source;

typedef struct mgl_quantize_plan {
    const mgl_checkpoint *checkpoint; /* not owned */
    const mgl_safetensors *files;     /* not owned */
    mgl_planned_source *sources;      /* owned (stored tensors) */
    mgl_planned_tensor *tensors;      /* owned (count), by file and offset */
    size_t count, capacity;
    int embedding;     /* stored tensor */
    int file_count;    /* safetensors files */
    bool untied;       /* the head is quantized, and was tied */
    bool keeps_head;   /* the head is not quantized */
    uint64_t *headers; /* owned (file_count): bytes before the data of each file */
} mgl_quantize_plan;

/* Starts the plan: chooses the matrices and their formats. Release with mgl_quantize_plan_clear,
 * also after a failure. */
mgl_status mgl_quantize_plan_make(const mgl_checkpoint *checkpoint, const mgl_safetensors *files,
                                  const mgl_quantize_request *request, mgl_quantize_plan *plan,
                                  mgl_error *err);
/* Completes the plan with the tensors and files of the new folder. */
mgl_status mgl_quantize_plan_list(mgl_quantize_plan *plan, const mgl_quantize_request *request,
                                  mgl_error *err);
void mgl_quantize_plan_clear(mgl_quantize_plan *plan);

/* Writes the name of a safetensors file. */
enum { MGL_SHARD_NAME = 48 };
void mgl_quantize_shard_name(const mgl_quantize_plan *plan, int file, char name[MGL_SHARD_NAME]);

/* Appends the header of a safetensors file, with its length of 8 bytes. */
void mgl_quantize_put_header(const mgl_quantize_plan *plan, int file, mgl_text *out);

/* Writes the name of the module of a tensor: the name without its last part. */
enum { MGL_MODULE_NAME = 512 };
void mgl_quantize_module(const char *tensor, char module[MGL_MODULE_NAME]);

#endif
