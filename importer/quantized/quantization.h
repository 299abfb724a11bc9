/*
 * The quantization that a checkpoint declares: `quantization_config` of config.json, or the file
 * quantize_config.json or quant_config.json beside it. The declaration names the layout and the
 * groups of weights; bind.h compares it with the stored tensors. Used by checkpoint.c.
 */
#ifndef MGL_IMPORTER_QUANTIZED_QUANTIZATION_H
#define MGL_IMPORTER_QUANTIZED_QUANTIZATION_H

#include "importer/model_files.h"
#include "importer/reasons.h"

typedef enum mgl_quantizer {
    MGL_QUANTIZER_NONE,       /* the checkpoint declares no quantization */
    MGL_QUANTIZER_COMPRESSED, /* compressed-tensors */
    MGL_QUANTIZER_GPTQ,
    MGL_QUANTIZER_AWQ,
    MGL_QUANTIZER_FP8,    /* quant_method "fp8": finegrained blocks, or a scale a tensor */
    MGL_QUANTIZER_FBGEMM, /* quant_method "fbgemm_fp8" */
    MGL_QUANTIZER_COUNT
} mgl_quantizer;

const char *mgl_quantizer_name(mgl_quantizer quantizer); /* the value of quant_method */

/* Which weights of a matrix share a scale. */
typedef enum mgl_scale_strategy {
    MGL_SCALES_TENSOR,
    MGL_SCALES_CHANNEL, /* a row */
    MGL_SCALES_GROUP,   /* `group` columns of a row */
    MGL_SCALES_BLOCK    /* `group_rows` rows and `group` columns */
} mgl_scale_strategy;

/* An entry of a list of modules: a name, or a "re:" pattern, which is compiled once. */
typedef struct mgl_module_entry {
    const char *name;            /* not owned; of a pattern: with "re:" */
    struct mgl_pattern *pattern; /* owned; NULL: a name */
} mgl_module_entry;

typedef struct mgl_module_list {
    mgl_module_entry *items; /* owned (count) */
    size_t count, capacity;
    bool stands; /* the config has the list */
} mgl_module_list;

/* How the matrices of some modules are quantized. */
typedef struct mgl_quantization_group {
    mgl_module_list targets; /* class names, module names and patterns; none: every module of the
                              * class Linear */
    bool plain;              /* the weights of these modules are not quantized */
    bool is_float;           /* e4m3; else integers of `bits` bits */
    bool symmetric;          /* without zero points */
    int64_t bits;            /* 4 or 8 */
    mgl_scale_strategy strategy;
    int64_t group, group_rows; /* columns, rows; -1: all columns */
} mgl_quantization_group;

typedef struct mgl_quantization {
    mgl_quantizer quantizer;
    bool rejected;                  /* there is a reason against the declaration */
    mgl_quantization_group *groups; /* owned (count) */
    size_t count;
    mgl_module_list ignore;    /* modules that are not quantized: names and patterns, or names that
                                * a module's name contains */
    bool ignore_parts;         /* entries of `ignore` are parts of names */
    bool desc_act;             /* GPTQ: columns may be reordered */
    bool is_v2;                /* GPTQ: zero points are stored as they are, not minus 1 */
    bool is_symmetry_declared; /* GPTQ: the config has the key `sym` */
    bool is_block_default; /* fp8: the config has no blocks; a single scale is that of a tensor */
    mgl_json beside;       /* owned: the file beside config.json; the pointers lead into this
                            * tree or into the tree of config.json */
} mgl_quantization;

/* Reads the declaration of config.json, which must outlive *out. Everything that is not supported
 * becomes a reason. Fails only if memory runs out. Release with mgl_quantization_clear, also after
 * a failure. */
mgl_status mgl_quantization_read(const mgl_json *config, mgl_quantization *out,
                                 mgl_reasons *reasons, mgl_error *err);

/* Same for quantize_config.json or quant_config.json. Without these files, the quantizer is NONE.
 */
mgl_status mgl_quantization_read_beside(const mgl_model_files *files, mgl_quantization *out,
                                        mgl_reasons *reasons, mgl_error *err);

void mgl_quantization_clear(mgl_quantization *quantization);

/* Returns the group of a module, or NULL: the module is not quantized. A module has two names,
 * which may be equal: in the files and in the graph; `class_name` is its class in PyTorch. */
const mgl_quantization_group *mgl_quantization_find(const mgl_quantization *quantization,
                                                    const char *stored, const char *canonical,
                                                    const char *class_name);

/* Adds an entry to a list. *valid: PCRE2 compiles its pattern; an invalid one is not added. */
mgl_status mgl_module_list_add(mgl_module_list *list, const char *name, bool *valid,
                               mgl_error *err);
void mgl_module_list_clear(mgl_module_list *list);

#endif
