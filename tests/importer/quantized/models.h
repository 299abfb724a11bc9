/*
 * Small quantized checkpoints for tests, in every layout. A model has one layer: hidden 64, ffn
 * 128, 4 heads and 2 kv heads of 16, vocabulary 64, so that q_proj and o_proj are square. The
 * numbers of a matrix are a function of its name and position, and the writer packs them element by
 * element.
 */
#ifndef MGL_TESTS_QUANTIZED_MODELS_H
#define MGL_TESTS_QUANTIZED_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NUMBERS: the decoded weights of the other layouts, as f32. */
typedef enum layout { PLAIN, NUMBERS, PACKED, BYTES, GPTQ, AWQ } layout;

/* How all seven matrices of the layer are stored. */
typedef struct recipe {
    const char *config; /* the object quantization_config; NULL: none */
    layout layout;
    int bits;
    bool is_float;              /* BYTES: e4m3 */
    int group, rows;            /* columns and rows that share a scale; 0: all */
    const char *scales;         /* dtype */
    const char *scale_name;     /* BYTES: NULL: weight_scale */
    bool zeros;                 /* zero points are drawn and stored; else they are the middle */
    bool unpacked_zeros;        /* PACKED: as I8 */
    int zero_offset;            /* GPTQ: subtracted from a zero point before it is stored */
    bool order, minus_one;      /* g_idx or weight_g_idx is stored: k / group, or -1 */
    const char *reorder;        /* reorders the columns of matrices with this text in their name:
                                 * column k belongs to the group of sorted_column(k). "": all
                                 * matrices; NULL: none */
    bool zero_map;              /* with `order`: every entry of the map is 0 */
    bool same_order;            /* the matrices with the same input have the same order */
    bool mlp_bias;              /* gate, up and down have biases */
    bool rank_zero, rank_one;   /* scales of a tensor, or of rows, without further dimensions */
    const char *more_config;    /* further keys of config.json */
    bool head, head_only_plain; /* the head is quantized too; it is stored in bf16 */
    const char *family;         /* NULL: llama; phi3 has fused matrices; helium */
} recipe;

typedef enum change_kind {
    NO_EDIT,
    DROP,   /* the tensor is not stored */
    RENAME, /* `text` replaces the suffix */
    DTYPE,  /* `text` becomes the dtype */
    SHAPE,  /* the shape becomes [a, b]; b of -1: [a] */
    SET,    /* bytes from a become b (4 bytes, or `text` many: "1", "2") */
    ADD,    /* a tensor of zeros with the dtype `text` and the shape [a, b] */
    CONFIG, /* `suffix` is replaced by `text` in config.json */
    CUT_END /* a bytes are cut from the end of the file */
} change_kind;

/* A change of the q_proj of a model, or of its head if the suffix begins with "lm_head.". */
typedef struct edit {
    change_kind kind;
    const char *suffix, *text;
    long a, b;
} edit;

/* Writes the model into the new folder. Returns false if the edit changes nothing. */
bool write_quantized(const recipe *r, const edit *e, const char *folder);

/* Returns a column that has, without reordering, the group that `column` has with reordering.
 * Returns `column` if the matrix is not reordered. */
int64_t sorted_column(const recipe *r, const char *name, int64_t column);

/* The code that the writer stores, and the zero point and scale that a column has without
 * reordering. `name`: the stored matrix. Codes and zero points are unsigned. */
unsigned drawn_code(const recipe *r, const char *name, int64_t row, int64_t column);
int drawn_zero(const recipe *r, const char *name, int64_t row, int64_t column);
float drawn_scale(const recipe *r, const char *name, int64_t row, int64_t column);
/* The weight of a stored column: (code - zero) * scale. */
float drawn_number(const recipe *r, const char *name, int64_t row, int64_t column);

/* The e4m3 number of a byte, by its definition. */
float e4m3_number(unsigned bits);

#endif
