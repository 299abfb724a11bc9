/*
 * Writes a random checkpoint in the Hugging Face layout, with any Llama shape and size, for tests
 * of shapes without a small fixture and for measurements:
 *
 *     write_random_model OUT --hidden 2048 --layers 16 --heads 32 --kv-heads 8 --head-dim 64
 *                            --ffn 8192 --vocab 128256 --dtype bf16 --tied
 *
 * The same options give the same bytes. Weights are normally distributed, through a table of 65,536
 * quantiles indexed by 16 random bits. They are scaled by fan-in, so that activations and logits
 * stay within a few units: matrices 1/sqrt(columns), those that write to the residual smaller by
 * sqrt(2 layers), embedding and head 2/sqrt(hidden); norms 1 +- 0.1. Bytes are written as they are
 * generated: any size needs only some megabytes of memory.
 */
#include "importer/graph.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { QUANTILES = 1 << 16, BLOCK = 1 << 18 };

/*  field          option            default  what */
#define NUMBERS(X)                                                                                 \
    X(hidden, "hidden", 64, "width of the residual")                                               \
    X(layers, "layers", 2, "decoder layers")                                                       \
    X(heads, "heads", 4, "query heads")                                                            \
    X(kv_heads, "kv-heads", 2, "key and value heads")                                              \
    X(head_dim, "head-dim", 16, "columns of a head")                                               \
    X(ffn, "ffn", 160, "width of the feed-forward layers")                                         \
    X(vocab, "vocab", 256, "tokens")                                                               \
    X(max_positions, "max-positions", 2048, "max_position_embeddings")                             \
    X(seed, "seed", 1, "of the random numbers")

typedef struct options {
#define FIELD(name, option, missing, what) long name;
    NUMBERS(FIELD)
#undef FIELD
    const char *folder;
    const char *rope; /* default, linear, llama3 or dynamic */
    mgl_dtype dtype;
    bool tied;
    bool old_config; /* rope_theta and rope_scaling instead of rope_parameters */
} options;

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "write_random_model: %s: %s\n", what, detail);
    exit(2);
}

static void print_help(void)
{
    printf("usage: write_random_model FOLDER [options]\n");
#define LINE(name, option, missing, what) printf("  --%-14s N  %s (%d)\n", option, what, missing);
    NUMBERS(LINE)
#undef LINE
    printf("  --dtype            D  f32, f16 or bf16 (bf16)\n"
           "  --rope             T  default, linear, llama3 or dynamic (default)\n"
           "  --tied                the head is the embedding table\n"
           "  --old-config          rope_theta and rope_scaling in place of rope_parameters\n");
}

static long parse_number(const char *name, const char *text)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > 1 << 28)
        fail(name, "a whole number of at least 1 is needed");
    return value;
}

static options parse_options(int count, char **arguments)
{
    enum { DTYPE = 100, ROPE, TIED, OLD_CONFIG, HELP };
    static const struct option known[] = {
#define OPTION(name, option, missing, what) {option, required_argument, NULL, 0},
        NUMBERS(OPTION)
#undef OPTION
            {"dtype", required_argument, NULL, DTYPE},
        {"rope", required_argument, NULL, ROPE},
        {"tied", no_argument, NULL, TIED},
        {"old-config", no_argument, NULL, OLD_CONFIG},
        {"help", no_argument, NULL, HELP},
        {0},
    };
    options o = {.rope = "default", .dtype = MGL_BF16};
    long *fields[] = {
#define ADDRESS(name, option, missing, what) &o.name,
        NUMBERS(ADDRESS)
#undef ADDRESS
    };
#define DEFAULT(name, option, missing, what) o.name = missing;
    NUMBERS(DEFAULT)
#undef DEFAULT
    for (int which, found; (found = getopt_long(count, arguments, "", known, &which)) != -1;) {
        if (found == 0)
            *fields[which] = parse_number(known[which].name, optarg);
        else if (found == DTYPE && (!mgl_dtype_parse(optarg, &o.dtype) || o.dtype == MGL_I32))
            fail("--dtype", "f32, f16 or bf16 is needed");
        else if (found == ROPE)
            o.rope = optarg;
        else if (found == TIED)
            o.tied = true;
        else if (found == OLD_CONFIG)
            o.old_config = true;
        else if (found == HELP)
            print_help(), exit(0);
        else if (found == '?')
            exit(1);
    }
    if (optind + 1 != count)
        fail("arguments", "exactly one folder is needed; --help lists the options");
    if (o.head_dim % 2 || o.heads % o.kv_heads)
        fail("shape", "--head-dim must be even and --kv-heads divide --heads");
    o.folder = arguments[optind];
    return o;
}

static FILE *create(const options *o, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", o->folder, name);
    FILE *file = fopen(path, "wb");
    if (!file)
        fail(path, strerror(errno));
    return file;
}

static void finish(FILE *file, const char *name)
{
    if (ferror(file) | fclose(file))
        fail(name, "could not be written");
}

/* ---- config.json ----------------------------------------------------------------------------- */

/* The members of a rope object after its type, each with a comma before it. */
static void print_rope(FILE *file, const options *o)
{
    if (!strcmp(o->rope, "linear") || !strcmp(o->rope, "dynamic"))
        fprintf(file, ", \"factor\": 2.0");
    else if (!strcmp(o->rope, "llama3"))
        fprintf(file,
                ", \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
                "\"original_max_position_embeddings\": %ld",
                o->max_positions > 8 ? o->max_positions / 8 : 1);
    else if (strcmp(o->rope, "default") != 0)
        fail("--rope", "default, linear, llama3 or dynamic is needed");
}

static void write_config(const options *o)
{
    static const char *const torch_names[] = {
        [MGL_F32] = "float32", [MGL_BF16] = "bfloat16", [MGL_F16] = "float16"};
    FILE *file = create(o, "config.json");
    fprintf(file,
            "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n  \"model_type\": \"llama\",\n"
            "  \"hidden_act\": \"silu\",\n  \"attention_bias\": false,\n  \"mlp_bias\": false,\n"
            "  \"hidden_size\": %ld,\n  \"num_hidden_layers\": %ld,\n"
            "  \"num_attention_heads\": %ld,\n  \"num_key_value_heads\": %ld,\n"
            "  \"head_dim\": %ld,\n  \"intermediate_size\": %ld,\n  \"vocab_size\": %ld,\n"
            "  \"max_position_embeddings\": %ld,\n  \"rms_norm_eps\": 1e-05,\n"
            "  \"tie_word_embeddings\": %s,\n  \"bos_token_id\": 0,\n  \"eos_token_id\": %ld,\n",
            o->hidden, o->layers, o->heads, o->kv_heads, o->head_dim, o->ffn, o->vocab,
            o->max_positions, o->tied ? "true" : "false", o->vocab - 1);
    if (!o->old_config) {
        fprintf(file, "  \"rope_parameters\": {\"rope_type\": \"%s\", \"rope_theta\": 10000.0",
                o->rope);
        print_rope(file, o);
        fprintf(file, "},\n");
    } else {
        fprintf(file, "  \"rope_theta\": 10000.0,\n  \"rope_scaling\": ");
        if (!strcmp(o->rope, "default")) {
            fprintf(file, "null,\n");
        } else {
            fprintf(file, "{\"type\": \"%s\"", o->rope);
            print_rope(file, o);
            fprintf(file, "},\n");
        }
    }
    fprintf(file, "  \"%s\": \"%s\"\n}\n", o->old_config ? "torch_dtype" : "dtype",
            torch_names[o->dtype]);
    finish(file, "config.json");
    file = create(o, "generation_config.json");
    fprintf(file, "{\n  \"bos_token_id\": 0,\n  \"eos_token_id\": %ld\n}\n", o->vocab - 1);
    finish(file, "generation_config.json");
}

/* ---- weights --------------------------------------------------------------------------------- */

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* The quantiles of the standard normal distribution at (i + 1/2) / 65536, by Newton's method on its
 * distribution function, from the neighbor's value. */
static void fill_quantiles(float *quantiles)
{
    double x = 0;
    for (int i = QUANTILES / 2; i < QUANTILES; i++) {
        double wanted = (i + 0.5) / (double)QUANTILES;
        for (int step = 0; step < 20; step++) {
            double difference = 0.5 * erfc(-x * M_SQRT1_2) - wanted;
            x -= difference / (exp(-0.5 * x * x) * 0.5 * M_SQRT1_2 * M_2_SQRTPI);
        }
        quantiles[i] = (float)x;
        quantiles[QUANTILES - 1 - i] = (float)-x;
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

static double choose_spread(const options *o, const mgl_tensor *tensor)
{
    if (tensor->rank == 1)
        return 0.1;
    if (ends_with(tensor->name, "embed_tokens.weight") || ends_with(tensor->name, "lm_head.weight"))
        return 2 / sqrt((double)o->hidden);
    double spread = 1 / sqrt((double)tensor->cols);
    if (ends_with(tensor->name, "o_proj.weight") || ends_with(tensor->name, "down_proj.weight"))
        spread /= sqrt(2.0 * (double)o->layers);
    return spread;
}

/* The quantiles, scaled and shifted for one tensor, in its dtype. */
static void fill_table(const options *o, const mgl_tensor *tensor, const float *quantiles,
                       float *scaled, void *table)
{
    double spread = choose_spread(o, tensor), middle = tensor->rank == 1 ? 1 : 0;
    for (int i = 0; i < QUANTILES; i++)
        scaled[i] = (float)(middle + spread * (double)quantiles[i]);
    mgl_convert(table, tensor->dtype, scaled, MGL_F32, QUANTILES);
}

static void write_tensor(FILE *file, const mgl_tensor *tensor, const void *table, uint64_t state)
{
    static union {
        uint16_t narrow[BLOCK];
        uint32_t wide[BLOCK];
    } block;
    const uint16_t *narrow_table = table;
    const uint32_t *wide_table = table;
    size_t size = mgl_dtype_size(tensor->dtype), left = (size_t)(tensor->rows * tensor->cols);
    while (left) {
        size_t count = left < BLOCK ? left : BLOCK;
        for (size_t i = 0; i < count; i += 4) {
            uint64_t bits = next_random(&state);
            for (size_t j = i; j < i + 4; j++, bits >>= 16) {
                if (size == 2)
                    block.narrow[j] = narrow_table[bits & 0xFFFF];
                else
                    block.wide[j] = wide_table[bits & 0xFFFF];
            }
        }
        if (fwrite(&block, size, count, file) != count)
            fail("model.safetensors", strerror(errno));
        left -= count;
    }
}

static void write_header(FILE *file, const mgl_graph *graph)
{
    size_t offset = 0, length = 0;
    char *header = NULL;
    FILE *text = open_memstream(&header, &length);
    if (!text)
        fail("header", strerror(errno));
    fprintf(text, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        size_t end = offset + (size_t)(t->rows * t->cols) * mgl_dtype_size(t->dtype);
        const char *dtype = t->dtype == MGL_F32 ? "F32" : t->dtype == MGL_F16 ? "F16" : "BF16";
        fprintf(text, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, dtype);
        if (t->rank == 2)
            fprintf(text, "%" PRId64 ",", t->rows);
        fprintf(text, "%" PRId64 "],\"data_offsets\":[%zu,%zu]}", t->cols, offset, end);
        offset = end;
    }
    fprintf(text, "}");
    while ((fflush(text), length) % 8)
        fputc(' ', text);
    finish(text, "header");
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)(length >> 8 * i);
    fwrite(prefix, 1, 8, file);
    fwrite(header, 1, length, file);
    free(header);
}

static void write_weights(const options *o, const mgl_graph *graph)
{
    static float quantiles[QUANTILES], scaled[QUANTILES], table[QUANTILES];
    FILE *file = create(o, "model.safetensors");
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    fill_quantiles(quantiles);
    write_header(file, graph);
    for (int i = 0; i < graph->tensor_count; i++) {
        uint64_t state = (uint64_t)o->seed << 20 | (uint64_t)i;
        state = next_random(&state);
        fill_table(o, &graph->tensors[i], quantiles, scaled, table);
        write_tensor(file, &graph->tensors[i], table, state);
    }
    finish(file, "model.safetensors");
}

int main(int count, char **arguments)
{
    options o = parse_options(count, arguments);
    mgl_geometry geometry = {.hidden = (int32_t)o.hidden,
                             .layers = (int32_t)o.layers,
                             .heads = (int32_t)o.heads,
                             .kv_heads = (int32_t)o.kv_heads,
                             .head_dim = (int32_t)o.head_dim,
                             .ffn = (int32_t)o.ffn,
                             .vocab = (int32_t)o.vocab,
                             .eps = 1e-5f};
    mgl_graph *graph = NULL;
    mgl_error err;
    float *frequencies = calloc((size_t)o.head_dim, sizeof *frequencies); /* only shapes matter */
    if (!frequencies || mgl_graph_build_llama(&geometry, (int32_t)o.max_positions, o.tied, o.dtype,
                                              frequencies, &graph, &err))
        fail("shape", "out of memory");
    if (mkdir(o.folder, 0777) && errno != EEXIST)
        fail(o.folder, strerror(errno));
    write_config(&o);
    write_weights(&o, graph);
    mgl_graph_free(graph);
    free(frequencies);
    return 0;
}
