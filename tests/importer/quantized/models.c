/* Writes quantized checkpoints. See models.h. */
#include "tests/importer/quantized/models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIDDEN = 64, FFN = 128, KV = 32, VOCAB = 64, MOST_TENSORS = 96 };

typedef struct stored {
    char name[96];
    const char *dtype;
    int rank;
    long shape[2];
    unsigned char *bytes;
    size_t size;
} stored;

typedef struct model {
    stored items[MOST_TENSORS];
    int count;
} model;

/* ---- numbers --------------------------------------------------------------------------------- */

static uint32_t draw(const char *name, int64_t a, int64_t b, uint32_t kind)
{
    uint32_t h = 2166136261u ^ kind * 97;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    h = (h ^ (uint32_t)a) * 16777619u;
    h = (h ^ (uint32_t)b) * 2654435761u;
    h ^= h >> 15;
    h *= 2246822519u;
    return h ^ h >> 13;
}

unsigned drawn_code(const recipe *r, const char *name, int64_t row, int64_t column)
{
    unsigned code = draw(name, row, column, 1) & ((1u << r->bits) - 1);
    return r->is_float && (code & 127) == 127 ? code - 1 : code; /* no NaN */
}

static int64_t group_of(const recipe *r, int64_t column)
{
    return r->group ? column / r->group : 0;
}

int64_t sorted_column(const recipe *r, const char *name, int64_t column)
{
    const int64_t columns = strstr(name, "down_proj") ? FFN : HIDDEN;
    const char *kind = !r->same_order              ? name
                       : strstr(name, "self_attn") ? (strstr(name, "o_proj") ? "o" : "qkv")
                                                   : (strstr(name, "down_proj") ? "down" : "mlp");
    if (!r->reorder || !strstr(name, r->reorder))
        return column;
    return (column * (2 * (int64_t)(draw(kind, 0, 0, 5) % 32) + 5) + 7) % columns;
}

static int64_t block_of(const recipe *r, int64_t row)
{
    return r->rows ? row / r->rows : 0;
}

int drawn_zero(const recipe *r, const char *name, int64_t row, int64_t column)
{
    const int count = 1 << r->bits;
    return r->zeros ? (int)(draw(name, block_of(r, row), group_of(r, column), 2) % (uint32_t)count)
                    : count / 2;
}

/* Exact in f16, bf16 and f32. */
float drawn_scale(const recipe *r, const char *name, int64_t row, int64_t column)
{
    if (!strcmp(r->scales, "F8_E8M0"))
        return ldexpf(1, (int)(draw(name, block_of(r, row), group_of(r, column), 3) % 9) - 10);
    return (float)(64 + draw(name, block_of(r, row), group_of(r, column), 3) % 64) / 4096;
}

float e4m3_number(unsigned bits)
{
    const int exponent = (int)(bits >> 3 & 15), mantissa = (int)(bits & 7);
    const double size =
        exponent ? (1 + mantissa / 8.0) * pow(2, exponent - 7) : mantissa / 8.0 * pow(2, -6);
    return (float)(bits & 128 ? -size : size);
}

float drawn_number(const recipe *r, const char *name, int64_t row, int64_t column)
{
    const unsigned code = drawn_code(r, name, row, column);
    column = sorted_column(r, name, column);
    const float number =
        r->is_float ? e4m3_number(code) : (float)((int)code - drawn_zero(r, name, row, column));
    return number * drawn_scale(r, name, row, column);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static size_t dtype_bytes(const char *dtype)
{
    return strstr(dtype, "64") ? 8 : strstr(dtype, "32") ? 4 : strstr(dtype, "16") ? 2 : 1;
}

static void resize(stored *t)
{
    size_t size = dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++)
        size *= (size_t)t->shape[i];
    unsigned char *bytes = calloc(1, size + 1);
    if (t->bytes)
        memcpy(bytes, t->bytes, size < t->size ? size : t->size);
    free(t->bytes);
    t->bytes = bytes;
    t->size = size;
}

static stored *add(model *m, const char *base, const char *suffix, const char *dtype, int rank,
                   long a, long b)
{
    stored *t = &m->items[m->count++];
    *t = (stored){.dtype = dtype, .rank = rank, .shape = {a, b}};
    snprintf(t->name, sizeof t->name, "%s%s", base, suffix);
    resize(t);
    return t;
}

static void put_float(stored *t, size_t index, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (!strcmp(t->dtype, "F32")) {
        memcpy(t->bytes + index * 4, &bits, 4);
        return;
    }
    int exponent;
    uint16_t half = (uint16_t)(bits >> 16);
    if (!strcmp(t->dtype, "F8_E8M0")) {
        frexpf(value, &exponent);
        t->bytes[index] = (unsigned char)(exponent - 1 + 127);
        return;
    }
    if (!strcmp(t->dtype, "F16")) {
        const float mantissa = frexpf(value, &exponent); /* [0.5, 1) */
        half = (uint16_t)((exponent + 14) << 10 | (int)((2 * mantissa - 1) * 1024));
    }
    memcpy(t->bytes + index * 2, &half, 2);
}

static void put_bits(stored *t, size_t word, int shift, unsigned value)
{
    uint32_t bits;
    memcpy(&bits, t->bytes + word * 4, 4);
    bits |= (uint32_t)value << shift;
    memcpy(t->bytes + word * 4, &bits, 4);
}

static void put_int(stored *t, size_t index, int64_t value)
{
    memcpy(t->bytes + index * dtype_bytes(t->dtype), &value, dtype_bytes(t->dtype));
}

static void add_plain(model *m, const char *name, int rank, long a, long b)
{
    stored *t = add(m, name, "", "BF16", rank, a, b);
    for (size_t i = 0; i < t->size / 2; i++)
        put_float(t, i, (float)(64 + draw(name, 0, (int64_t)i, 4) % 64) / 64);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static long groups_of(const recipe *r, long columns)
{
    return r->group ? (columns + r->group - 1) / r->group : 1;
}

/* Scales [N, G], or [blocks of rows, G]. */
static void add_scales(model *m, const recipe *r, const char *base, long rows, long columns)
{
    const char *suffix = r->scale_name ? r->scale_name : "weight_scale";
    const long height = r->rows ? (rows + r->rows - 1) / r->rows : 1, width = groups_of(r, columns);
    const int rank = r->rank_zero ? 0 : r->rank_one ? 1 : 2;
    stored *t = add(m, base, suffix, r->scales, rank, height, width);
    for (long i = 0; i < height; i++)
        for (long g = 0; g < width; g++)
            put_float(
                t, (size_t)(i * width + g),
                drawn_scale(r, base, i * (r->rows ? r->rows : 1), g * (r->group ? r->group : 1)));
}

static void add_order(model *m, const recipe *r, const char *base, const char *suffix, long columns)
{
    stored *t = r->order || r->minus_one ? add(m, base, suffix, "I32", 1, columns, 0) : NULL;
    for (long k = 0; t && k < columns; k++)
        put_int(t, (size_t)k,
                r->minus_one  ? -1
                : r->zero_map ? 0
                              : group_of(r, sorted_column(r, base, k)));
}

static void add_packed(model *m, const recipe *r, const char *base, long rows, long columns)
{
    const int fields = 32 / r->bits;
    const long width = (columns * r->bits + 31) / 32, groups = groups_of(r, columns);
    stored *t = add(m, base, "weight_packed", "I32", 2, rows, width);
    for (long n = 0; n < rows; n++)
        for (long k = 0; k < columns; k++)
            put_bits(t, (size_t)(n * width + k / fields), (int)(k % fields) * r->bits,
                     drawn_code(r, base, n, k));
    t = add(m, base, "weight_shape", "I64", 1, 2, 0);
    put_int(t, 0, rows);
    put_int(t, 1, columns);
    add_scales(m, r, base, rows, columns);
    add_order(m, r, base, "weight_g_idx", columns);
    if (!r->zeros)
        return;
    t = r->unpacked_zeros
            ? add(m, base, "weight_zero_point", "I8", 2, rows, groups)
            : add(m, base, "weight_zero_point", "I32", 2, (rows * r->bits + 31) / 32, groups);
    for (long n = 0; n < rows; n++)
        for (long g = 0; g < groups; g++) {
            const int zero = drawn_zero(r, base, n, g * (r->group ? r->group : 1));
            if (r->unpacked_zeros)
                put_int(t, (size_t)(n * groups + g), zero - (1 << (r->bits - 1)));
            else
                put_bits(t, (size_t)(n / fields * groups + g), (int)(n % fields) * r->bits,
                         (unsigned)zero);
        }
}

static void add_bytes(model *m, const recipe *r, const char *base, long rows, long columns)
{
    stored *t = add(m, base, "weight", r->is_float ? "F8_E4M3" : "I8", 2, rows, columns);
    for (long n = 0; n < rows; n++)
        for (long k = 0; k < columns; k++)
            t->bytes[n * columns + k] =
                (unsigned char)(drawn_code(r, base, n, k) - (r->is_float ? 0 : 128));
    add_scales(m, r, base, rows, columns);
    add_order(m, r, base, "weight_g_idx", columns);
    if (!r->zeros)
        return;
    t = add(m, base, "weight_zero_point", "I8", 2, r->rows ? rows / r->rows : 1,
            groups_of(r, columns));
    for (long n = 0; n < t->shape[0]; n++)
        for (long g = 0; g < t->shape[1]; g++)
            put_int(
                t, (size_t)(n * t->shape[1] + g),
                drawn_zero(r, base, n * (r->rows ? r->rows : 1), g * (r->group ? r->group : 1)) -
                    128);
}

/* GPTQ and AWQ: scales [G, N] and zero points [G, N bits / 32]. */
static void add_column_scales(model *m, const recipe *r, const char *base, long rows, long columns)
{
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    const long groups = groups_of(r, columns), width = rows * r->bits / 32;
    stored *scales = add(m, base, "scales", r->scales, 2, groups, rows);
    stored *zeros = add(m, base, "qzeros", "I32", 2, groups, width);
    for (long g = 0; g < groups; g++)
        for (long n = 0; n < rows; n++)
            put_float(scales, (size_t)(g * rows + n),
                      drawn_scale(r, base, n, g * (r->group ? r->group : 1)));
    for (long g = 0; g < groups; g++)
        for (long c = 0; c < width; c++)
            for (int i = 0; i < 32 / r->bits; i++) {
                const long n = c * (32 / r->bits) + (r->layout == AWQ ? order[i] : i);
                const int zero = drawn_zero(r, base, n, g * (r->group ? r->group : 1));
                put_bits(zeros, (size_t)(g * width + c), i * r->bits,
                         (unsigned)(zero - r->zero_offset) & ((1u << r->bits) - 1));
            }
}

static void add_gptq(model *m, const recipe *r, const char *base, long rows, long columns)
{
    const int fields = 32 / r->bits;
    stored *t = add(m, base, "qweight", "I32", 2, columns / fields, rows);
    for (long k = 0; k < columns; k++)
        for (long n = 0; n < rows; n++)
            put_bits(t, (size_t)(k / fields * rows + n), (int)(k % fields) * r->bits,
                     drawn_code(r, base, n, k));
    add_column_scales(m, r, base, rows, columns);
    add_order(m, r, base, "g_idx", columns);
}

static void add_awq(model *m, const recipe *r, const char *base, long rows, long columns)
{
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    stored *t = add(m, base, "qweight", "I32", 2, columns, rows / 8);
    for (long k = 0; k < columns; k++)
        for (long c = 0; c < rows / 8; c++)
            for (int i = 0; i < 8; i++)
                put_bits(t, (size_t)(k * (rows / 8) + c), i * 4,
                         drawn_code(r, base, 8 * c + order[i], k));
    add_column_scales(m, r, base, rows, columns);
    add_order(m, r, base, "g_idx", columns);
}

static void add_numbers(model *m, const recipe *r, const char *base, long rows, long columns)
{
    stored *t = add(m, base, "weight", "F32", 2, rows, columns);
    for (long n = 0; n < rows; n++)
        for (long k = 0; k < columns; k++)
            put_float(t, (size_t)(n * columns + k), drawn_number(r, base, n, k));
}

static void add_matrix(model *m, const recipe *r, const char *base, long rows, long columns)
{
    char name[96];
    snprintf(name, sizeof name, "%sweight", base);
    if (r->layout == PLAIN)
        add_plain(m, name, 2, rows, columns);
    else if (r->layout == NUMBERS)
        add_numbers(m, r, base, rows, columns);
    else if (r->layout == PACKED)
        add_packed(m, r, base, rows, columns);
    else if (r->layout == BYTES)
        add_bytes(m, r, base, rows, columns);
    else if (r->layout == GPTQ)
        add_gptq(m, r, base, rows, columns);
    else
        add_awq(m, r, base, rows, columns);
}

/* ---- the model ------------------------------------------------------------------------------- */

#define LAYER "model.layers.0."

static void add_model(model *m, const recipe *r)
{
    add_plain(m, "model.embed_tokens.weight", 2, VOCAB, HIDDEN);
    add_plain(m, "model.norm.weight", 1, HIDDEN, 0);
    add_plain(m, LAYER "input_layernorm.weight", 1, HIDDEN, 0);
    add_plain(m, LAYER "post_attention_layernorm.weight", 1, HIDDEN, 0);
    if (r->family && !strcmp(r->family, "phi3")) {
        add_matrix(m, r, LAYER "self_attn.qkv_proj.", HIDDEN + 2 * KV, HIDDEN);
        add_matrix(m, r, LAYER "mlp.gate_up_proj.", 2 * FFN, HIDDEN);
    } else {
        add_matrix(m, r, LAYER "self_attn.q_proj.", HIDDEN, HIDDEN);
        add_matrix(m, r, LAYER "self_attn.k_proj.", KV, HIDDEN);
        add_matrix(m, r, LAYER "self_attn.v_proj.", KV, HIDDEN);
        add_matrix(m, r, LAYER "mlp.gate_proj.", FFN, HIDDEN);
        add_matrix(m, r, LAYER "mlp.up_proj.", FFN, HIDDEN);
    }
    add_matrix(m, r, LAYER "self_attn.o_proj.", HIDDEN, HIDDEN);
    add_matrix(m, r, LAYER "mlp.down_proj.", HIDDEN, FFN);
    if (r->mlp_bias) {
        add_plain(m, LAYER "mlp.gate_proj.bias", 1, FFN, 0);
        add_plain(m, LAYER "mlp.up_proj.bias", 1, FFN, 0);
        add_plain(m, LAYER "mlp.down_proj.bias", 1, HIDDEN, 0);
    }
    if (r->head)
        add_matrix(m, r, "lm_head.", VOCAB, HIDDEN);
    if (r->head_only_plain)
        add_plain(m, "lm_head.weight", 2, VOCAB, HIDDEN);
}

static bool edit_model(model *m, const edit *e)
{
    char name[96];
    stored *t = NULL;
    const char *suffix = e->suffix ? e->suffix : "";
    snprintf(name, sizeof name, "%s%s",
             strncmp(suffix, "lm_head.", 8) ? LAYER "self_attn.q_proj." : "", suffix);
    for (int i = 0; i < m->count; i++)
        if (!strcmp(m->items[i].name, name))
            t = &m->items[i];
    if (e->kind == NO_EDIT || e->kind == CONFIG || e->kind == CUT_END)
        return true;
    if (e->kind == ADD) {
        add(m, name, "", e->text, e->b < 0 ? 1 : 2, e->a, e->b);
        return !t;
    }
    if (!t)
        return false;
    if (e->kind == DROP) {
        free(t->bytes);
        *t = m->items[--m->count];
    } else if (e->kind == RENAME) {
        snprintf(t->name, sizeof t->name, LAYER "self_attn.q_proj.%s", e->text);
    } else if (e->kind == DTYPE) {
        t->dtype = e->text;
        resize(t);
    } else if (e->kind == SHAPE) {
        t->rank = e->b < 0 ? 1 : 2;
        t->shape[0] = e->a;
        t->shape[1] = e->b;
        resize(t);
    } else {
        const size_t size = e->text ? (size_t)atoi(e->text) : 4;
        const uint32_t value = (uint32_t)e->b;
        memcpy(t->bytes + e->a, &value, size);
    }
    return true;
}

static bool write_tensors(const model *m, const char *folder, long cut)
{
    char path[256];
    size_t at = 0;
    char *header = calloc(1, (size_t)m->count * 256 + 16);
    size_t used = (size_t)sprintf(header, "{");
    for (int i = 0; i < m->count; i++) {
        const stored *t = &m->items[i];
        used += (size_t)sprintf(header + used, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                                i ? "," : "", t->name, t->dtype);
        for (int d = 0; d < t->rank; d++)
            used += (size_t)sprintf(header + used, "%s%ld", d ? "," : "", t->shape[d]);
        used += (size_t)sprintf(header + used, "],\"data_offsets\":[%zu,%zu]}", at, at + t->size);
        at += t->size;
    }
    used += (size_t)sprintf(header + used, "}");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = fopen(path, "wb");
    const uint64_t length = used;
    bool good = file && fwrite(&length, 8, 1, file) == 1 && fwrite(header, used, 1, file) == 1;
    for (int i = 0; i < m->count && good; i++)
        good = !m->items[i].size || fwrite(m->items[i].bytes, m->items[i].size, 1, file) == 1;
    const long end = file ? ftell(file) : 0;
    good &= file && !fclose(file);
    free(header);
    return good && (!cut || !truncate(path, end - cut));
}

static bool write_config(const recipe *r, const edit *e, const char *folder)
{
    char text[4096], path[256];
    snprintf(text, sizeof text,
             "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"hidden_size\": 64,\n"
             " \"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,\n"
             " \"intermediate_size\": 128, \"vocab_size\": 64, \"max_position_embeddings\": 64,\n"
             " \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\", \"torch_dtype\": \"bfloat16\",\n"
             " \"eos_token_id\": 2, \"tie_word_embeddings\": true%s%s%s%s}\n",
             !r->family                   ? "LlamaForCausalLM"
             : !strcmp(r->family, "phi3") ? "Phi3ForCausalLM"
                                          : "HeliumForCausalLM",
             r->family ? r->family : "llama", r->config ? ",\n \"quantization_config\": " : "",
             r->config ? r->config : "", r->more_config ? ",\n " : "",
             r->more_config ? r->more_config : "");
    char *found = e->kind == CONFIG ? strstr(text, e->suffix) : NULL;
    if (e->kind == CONFIG && !found)
        return false;
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    if (found)
        fprintf(file, "%.*s%s%s", (int)(found - text), text, e->text, found + strlen(e->suffix));
    else
        fputs(text, file);
    return !fclose(file);
}

bool write_quantized(const recipe *r, const edit *e, const char *folder)
{
    static const edit none = {0};
    model *m = calloc(1, sizeof *m);
    e = e ? e : &none;
    add_model(m, r);
    const bool good = edit_model(m, e) && !mkdir(folder, 0777) &&
                      write_tensors(m, folder, e->kind == CUT_END ? e->a : 0) &&
                      write_config(r, e, folder);
    for (int i = 0; i < m->count; i++)
        free(m->items[i].bytes);
    free(m);
    return good;
}
