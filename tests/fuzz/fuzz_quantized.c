/*
 * Any declaration of quantized weights with any tensors: a checkpoint of one layer whose seven
 * matrices are all 64 x 64. The first line of the input is the value of quantization_config. Each
 * further line is a tensor of every matrix, "SUFFIX DTYPE EXTENT EXTENT". After an empty line, the
 * bytes of the tensors follow, and are repeated. The checkpoint is rejected with a message, or
 * every matrix is read: codes and zero points within their bits, and finite numbers.
 */
#include "importer/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 64, MATRICES = 7, MOST_LINES = 12, MOST_BYTES = 1 << 15, MOST_TEXT = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static const char *folder(void)
{
    static char path[] = "/tmp/megalith-fuzz-XXXXXX";
    static bool made;
    if (!made)
        require(mkdtemp(path) != NULL);
    made = true;
    return path;
}

/* A line of the input: a tensor of every matrix. */
typedef struct line {
    char suffix[32], dtype[12];
    long extents[2];
    int rank;
    size_t bytes;
} line;

static size_t element_bytes(const char *dtype)
{
    static const char *const known[] = {"I8",  "U8",   "F8_E4M3", "F8_E5M2", "F8_E8M0",
                                        "F16", "BF16", "I16",     "I32",     "U32",
                                        "F32", "I64",  "F64"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i], dtype))
            return i < 5 ? 1 : i < 8 ? 2 : i < 11 ? 4 : 8;
    return 0;
}

/* Parses a line; false: it describes no tensor. Names are letters and "_", so that they need no
 * escapes. */
static bool parse(const char *text, line *out)
{
    *out = (line){.extents = {1, 1}};
    const int fields = sscanf(text, "%31[a-z_.] %11[A-Z0-9_] %ld %ld", out->suffix, out->dtype,
                              &out->extents[0], &out->extents[1]);
    out->rank = fields - 2;
    out->bytes = fields < 2 ? 0 : element_bytes(out->dtype);
    for (int i = 0; i < out->rank; i++) {
        if (out->extents[i] < 0 || out->extents[i] > MOST_BYTES)
            return false;
        out->bytes *= (size_t)out->extents[i];
    }
    return fields >= 2 && element_bytes(out->dtype) && out->bytes <= MOST_BYTES;
}

static FILE *create(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    FILE *file = fopen(path, "wb");
    require(file != NULL);
    return file;
}

static void write_config(const char *declaration)
{
    FILE *file = create("config.json");
    fprintf(file,
            "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 64, "
            "\"intermediate_size\": 64, \"num_hidden_layers\": 1, \"num_attention_heads\": 4, "
            "\"vocab_size\": 2, \"max_position_embeddings\": 16, \"tie_word_embeddings\": true, "
            "\"eos_token_id\": 1, \"quantization_config\": %s}",
            declaration);
    require(!fclose(file));
}

static const char *const matrices[MATRICES] = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

static void add_entry(char *header, const char *name, const char *dtype, const char *shape,
                      size_t bytes, size_t *at)
{
    const size_t used = strlen(header);
    snprintf(header + used, MOST_TEXT - used,
             "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
             used > 1 ? "," : "", name, dtype, shape, *at, *at + bytes);
    *at += bytes;
}

static void write_tensors(const line *lines, int count, const uint8_t *data, size_t size)
{
    static char header[MOST_TEXT];
    size_t at = 0;
    strcpy(header, "{");
    add_entry(header, "model.embed_tokens.weight", "BF16", "2,64", 4 * SIZE, &at);
    add_entry(header, "model.norm.weight", "BF16", "64", 2 * SIZE, &at);
    add_entry(header, "model.layers.0.input_layernorm.weight", "BF16", "64", 2 * SIZE, &at);
    add_entry(header, "model.layers.0.post_attention_layernorm.weight", "BF16", "64", 2 * SIZE,
              &at);
    for (int i = 0; i < MATRICES; i++)
        for (int l = 0; l < count; l++) {
            char name[96], shape[48] = "";
            snprintf(name, sizeof name, "model.layers.0.%s.%s", matrices[i], lines[l].suffix);
            if (lines[l].rank == 1)
                snprintf(shape, sizeof shape, "%ld", lines[l].extents[0]);
            else if (lines[l].rank == 2)
                snprintf(shape, sizeof shape, "%ld,%ld", lines[l].extents[0], lines[l].extents[1]);
            add_entry(header, name, lines[l].dtype, shape, lines[l].bytes, &at);
        }
    strcat(header, "}");
    FILE *file = create("model.safetensors");
    const uint64_t length = strlen(header);
    fwrite(&length, 8, 1, file);
    fputs(header, file);
    for (size_t i = 0; i < at; i++)
        fputc(size ? data[i % size] : 0, file);
    require(!fclose(file));
}

static void check_matrix(const mgl_graph *graph, int index)
{
    static float numbers[SIZE * SIZE], scales[SIZE * SIZE];
    static uint8_t codes[SIZE * SIZE], zeros[SIZE * SIZE];
    const mgl_tensor *t = &graph->tensors[index];
    const int most = 1 << mgl_weight_code_get(t->quantized.code)->bits;
    mgl_quantized_rows to = {codes, scales, t->quantized.zeros ? zeros : NULL, NULL};
    mgl_error err = {0};
    require(t->rows == SIZE && t->cols == SIZE && mgl_weight_format_valid(t->quantized));
    const mgl_status status = graph->read(graph, index, 0, SIZE, numbers, &err);
    require(graph->read_codes(graph, index, 0, SIZE, &to, &err) == status);
    require(!status || (status == MGL_BAD_INPUT && err.message[0]));
    for (int i = 0; i < SIZE * SIZE && !status; i++)
        require(isfinite(numbers[i]) && codes[i] < most);
    const int64_t groups = SIZE * mgl_weight_format_groups(t->quantized, SIZE);
    for (int64_t i = 0; i < groups && to.zeros && !status; i++)
        require(zeros[i] < most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024] = "null";
    line lines[MOST_LINES];
    int count = 0;
    bool first = true;
    size_t at = 0;
    while (at < size) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - data) - at : size - at;
        char now[1024];
        snprintf(now, sizeof now, "%.*s", (int)(length < 1000 ? length : 1000),
                 (const char *)data + at);
        at += length + (end != NULL);
        if (!length)
            break;
        if (first)
            strcpy(text, now);
        else if (count < MOST_LINES && parse(now, &lines[count]))
            count++;
        first = false;
    }
    write_config(text);
    write_tensors(lines, count, data + at, size - at);
    mgl_checkpoint *checkpoint = NULL;
    mgl_error err = {0};
    if (mgl_checkpoint_open(folder(), &checkpoint, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0]);
        return 0;
    }
    const mgl_graph *graph = checkpoint->graph;
    require((graph != NULL) == !checkpoint->reasons.count);
    for (int i = 0; graph && i < graph->tensor_count; i++)
        if (mgl_tensor_is_quantized(&graph->tensors[i]))
            check_matrix(graph, i);
    mgl_checkpoint_close(checkpoint);
    return 0;
}
