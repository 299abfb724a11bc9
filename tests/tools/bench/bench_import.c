/*
 * Measures how fast one thread reads the codes, scales and zero points of a quantized model, in
 * parts of as many codes as the packers read at once. Prints a JSON object: bytes as stored, and
 * the best of all rounds, for all matrices and by the kind of the matrix. The second form writes a
 * synthetic model of one layer, with 4-bit codes in groups of 128 columns. With `gptq-order`, the
 * columns of a group are not adjacent (act-order).
 *
 *     bench_import FOLDER [ROUNDS [CODES]]
 *     bench_import make gptq|gptq-order|awq FOLDER HIDDEN FFN
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "importer/checkpoint.h"

enum { ROUNDS = 5, PART = 1 << 20, GROUP = 128, VOCAB = 64, MOST_TENSORS = 64 };

static void fail(const char *where, const char *message)
{
    fprintf(stderr, "bench_import: %s: %s\n", where, message);
    exit(2);
}

static void check(mgl_status status, const mgl_error *err)
{
    if (status)
        fail(err->where, err->message);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Reads a matrix. */
static void read_matrix(const mgl_graph *graph, int index, int64_t codes)
{
    const mgl_tensor *t = &graph->tensors[index];
    const int64_t groups = mgl_weight_format_groups(t->quantized, t->cols);
    const int64_t most = codes / t->cols / 8 * 8 > 8 ? codes / t->cols / 8 * 8 : 8;
    mgl_quantized_rows to = {malloc((size_t)(most * t->cols)), malloc((size_t)(most * groups) * 4),
                             t->quantized.zeros ? malloc((size_t)(most * groups)) : NULL, NULL};
    mgl_error err;
    for (int64_t row = 0; row < t->rows; row += most) {
        const int64_t count = t->rows - row < most ? t->rows - row : most;
        check(graph->read_codes(graph, index, row, count, &to, &err), &err);
    }
    free(to.codes);
    free(to.scales);
    free(to.zeros);
}

/* The matrices whose names contain `kind`. */
typedef struct sum {
    const char *kind;
    uint64_t bytes;
    double seconds, best;
} sum;

static void measure(const mgl_checkpoint *checkpoint, int rounds, int64_t codes)
{
    static sum sums[] = {{.kind = ""},          {.kind = "self_attn"}, {.kind = "gate_proj"},
                         {.kind = "down_proj"}, {.kind = "up_proj"},   {.kind = "lm_head"}};
    enum { SUMS = sizeof sums / sizeof *sums };
    const mgl_graph *graph = checkpoint->graph;
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < SUMS; k++)
            sums[k].seconds = 0, sums[k].bytes = 0;
        for (int i = 0; i < graph->tensor_count; i++) {
            if (!mgl_tensor_is_quantized(&graph->tensors[i]))
                continue;
            const double start = mgl_clock_s();
            read_matrix(graph, i, codes);
            const double seconds = mgl_clock_s() - start;
            for (int k = 0; k < SUMS; k++)
                if (strstr(graph->tensors[i].name, sums[k].kind)) {
                    sums[k].seconds += seconds;
                    sums[k].bytes += mgl_tensor_bytes(&graph->tensors[i]);
                }
        }
        for (int k = 0; k < SUMS; k++)
            if (round == 0 || sums[k].seconds < sums[k].best)
                sums[k].best = sums[k].seconds;
    }
    printf("{\"bytes\": %" PRIu64 ", \"parameters\": %" PRIu64 ", \"seconds\": %.6f, "
           "\"gigabytes_per_second\": %.3f",
           sums->bytes, checkpoint->parameters, sums->best, (double)sums->bytes / sums->best / 1e9);
    for (int k = 1; k < SUMS; k++)
        if (sums[k].bytes)
            printf(", \"%s\": %.3f", sums[k].kind, (double)sums[k].bytes / sums[k].best / 1e9);
    printf("}\n");
}

/* ---- a synthetic model ----------------------------------------------------------------------- */

typedef struct stored {
    char name[80];
    const char *dtype;
    long rows, columns; /* rows of -1: rank 1 */
} stored;

static stored tensors[MOST_TENSORS];
static int tensor_count;

static uint32_t draw(void)
{
    static uint64_t state = 42;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static void add(const char *base, const char *suffix, const char *dtype, long rows, long columns)
{
    stored *t = &tensors[tensor_count++];
    *t = (stored){.dtype = dtype, .rows = rows, .columns = columns};
    snprintf(t->name, sizeof t->name, "%s%s", base, suffix);
}

static void add_matrix(const char *layout, const char *base, long rows, long columns)
{
    if (!strcmp(layout, "awq"))
        add(base, "qweight", "I32", columns, rows / 8);
    else
        add(base, "qweight", "I32", columns / 8, rows);
    add(base, "qzeros", "I32", columns / GROUP, rows / 8);
    add(base, "scales", "F16", columns / GROUP, rows);
    if (!strcmp(layout, "gptq-order"))
        add(base, "g_idx", "I32", -1, columns);
}

static size_t size_of(const stored *t)
{
    return (size_t)(t->rows < 0 ? 1 : t->rows) * (size_t)t->columns * (t->dtype[1] == '3' ? 4 : 2);
}

/* The groups of columns in random order. */
static void fill_map(int32_t *to, long columns)
{
    for (long k = 0; k < columns; k++)
        to[k] = (int32_t)(k / GROUP);
    for (long k = columns - 1; k > 0; k--) {
        const long other = (long)(draw() % (uint32_t)(k + 1));
        const int32_t group = to[k];
        to[k] = to[other];
        to[other] = group;
    }
}

/* 16-bit numbers are about 1. */
static void write_tensor(const stored *t, FILE *file)
{
    const size_t size = size_of(t);
    uint32_t *words = malloc(size + 4);
    for (size_t i = 0; i < size / 4; i++)
        words[i] = t->dtype[0] == 'I'         ? draw()
                   : !strcmp(t->dtype, "F16") ? 0x3C003C00 | (draw() & 0x00FF00FF)
                                              : 0x3F803F80;
    if (strstr(t->name, "g_idx"))
        fill_map((int32_t *)words, t->columns);
    if (fwrite(words, size, 1, file) != 1)
        fail(t->name, "cannot be written");
    free(words);
}

static FILE *create(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file)
        fail(path, "cannot be created");
    return file;
}

static void write_tensors(const char *folder)
{
    static char header[MOST_TENSORS * 256];
    size_t used = (size_t)sprintf(header, "{"), at = 0;
    for (int i = 0; i < tensor_count; i++) {
        const stored *t = &tensors[i];
        used += (size_t)sprintf(header + used, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                                i ? "," : "", t->name, t->dtype);
        if (t->rows >= 0)
            used += (size_t)sprintf(header + used, "%ld,", t->rows);
        used += (size_t)sprintf(header + used, "%ld],\"data_offsets\":[%zu,%zu]}", t->columns, at,
                                at + size_of(t));
        at += size_of(t);
    }
    used += (size_t)sprintf(header + used, "}");
    used += (size_t)sprintf(header + used, "%*s", (int)(7 - (used + 7) % 8), "");
    const uint64_t length = used;
    FILE *file = create(folder, "model.safetensors");
    fwrite(&length, sizeof length, 1, file);
    fwrite(header, used, 1, file);
    for (int i = 0; i < tensor_count; i++)
        write_tensor(&tensors[i], file);
    if (fclose(file))
        fail(folder, "cannot be written");
}

static void make(const char *layout, const char *folder, long hidden, long ffn)
{
    const bool is_awq = !strcmp(layout, "awq");
    if (hidden < GROUP || hidden % GROUP || ffn < GROUP || ffn % GROUP)
        fail("HIDDEN, FFN", "are not multiples of 128");
    mkdir(folder, 0777);
    add("model.embed_tokens.weight", "", "BF16", VOCAB, hidden);
    add("model.norm.weight", "", "BF16", -1, hidden);
    add("model.layers.0.input_layernorm.weight", "", "BF16", -1, hidden);
    add("model.layers.0.post_attention_layernorm.weight", "", "BF16", -1, hidden);
    add_matrix(layout, "model.layers.0.self_attn.q_proj.", hidden, hidden);
    add_matrix(layout, "model.layers.0.self_attn.k_proj.", hidden, hidden);
    add_matrix(layout, "model.layers.0.self_attn.v_proj.", hidden, hidden);
    add_matrix(layout, "model.layers.0.self_attn.o_proj.", hidden, hidden);
    add_matrix(layout, "model.layers.0.mlp.gate_proj.", ffn, hidden);
    add_matrix(layout, "model.layers.0.mlp.up_proj.", ffn, hidden);
    add_matrix(layout, "model.layers.0.mlp.down_proj.", hidden, ffn);
    write_tensors(folder);
    FILE *file = create(folder, "config.json");
    fprintf(file,
            "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",\n"
            " \"hidden_size\": %ld, \"intermediate_size\": %ld, \"num_hidden_layers\": 1,\n"
            " \"num_attention_heads\": %ld, \"num_key_value_heads\": %ld, \"head_dim\": 64,\n"
            " \"vocab_size\": %d, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5,\n"
            " \"hidden_act\": \"silu\", \"tie_word_embeddings\": true,\n"
            " \"quantization_config\": {\"quant_method\": \"%s\", \"bits\": 4, "
            "\"group_size\": %d, %s}}\n",
            hidden, ffn, hidden / 64, hidden / 64, VOCAB, is_awq ? "awq" : "gptq", GROUP,
            is_awq                         ? "\"zero_point\": true, \"version\": \"gemm\""
            : strcmp(layout, "gptq-order") ? "\"sym\": false, \"desc_act\": false"
                                           : "\"sym\": false, \"desc_act\": true");
    if (fclose(file))
        fail(folder, "cannot be written");
}

int main(int count, char **arguments)
{
    const int rounds = count > 2 ? atoi(arguments[2]) : ROUNDS;
    const int64_t codes = count > 3 ? atoll(arguments[3]) : PART;
    mgl_checkpoint *checkpoint;
    mgl_error err;
    if (count == 6 && !strcmp(arguments[1], "make")) {
        make(arguments[2], arguments[3], atol(arguments[4]), atol(arguments[5]));
        return 0;
    }
    if (count < 2 || count > 4 || rounds < 1 || codes < 1) {
        fprintf(stderr, "usage: bench_import FOLDER [ROUNDS [CODES]]\n"
                        "       bench_import make gptq|gptq-order|awq FOLDER HIDDEN FFN\n");
        return 1;
    }
    check(mgl_import(arguments[1], &checkpoint, &err), &err);
    measure(checkpoint, rounds, codes);
    mgl_checkpoint_close(checkpoint);
    return 0;
}
