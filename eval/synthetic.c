/* Implements synthetic.h: known shapes, configurations from files, and graphs that compute their
 * weights. */
#include "eval/synthetic.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/memory.h"
#include "base/text.h"
#include "importer/checkpoint.h"
#include "importer/layout.h"
#include "importer/mega.h"
#include "importer/model_files.h"

/* Tensor numbers of caches start after those of the graph. */
enum { CACHE_TENSORS = 1 << 24 };

#define LLAMA3_ROPE(by)                                                                            \
    {                                                                                              \
        .type = MGL_ROPE_LLAMA3, .theta = 500000, .factor = by, .low_freq_factor = 1,              \
        .high_freq_factor = 4, .original_max_positions = 8192, .attention_factor = 1               \
    }
#define DEFAULT_ROPE(base)                                                                         \
    {                                                                                              \
        .type = MGL_ROPE_DEFAULT, .theta = base, .factor = 1, .attention_factor = 1                \
    }

static const mgl_config configs[] = {
    [MGL_SHAPE_LLAMA_1B] = {.geometry = {2048, 16, 32, 8, 64, 8192, 128256, 1e-5f},
                            .max_positions = 131072,
                            .tied = true,
                            .rope = LLAMA3_ROPE(32),
                            .extras = 0},
    [MGL_SHAPE_LLAMA_3B] = {.geometry = {3072, 28, 24, 8, 128, 8192, 128256, 1e-5f},
                            .max_positions = 131072,
                            .tied = true,
                            .rope = LLAMA3_ROPE(32),
                            .extras = 0},
    [MGL_SHAPE_LLAMA_8B] = {.geometry = {4096, 32, 32, 8, 128, 14336, 128256, 1e-5f},
                            .max_positions = 131072,
                            .tied = false,
                            .rope = LLAMA3_ROPE(8),
                            .extras = 0},
    [MGL_SHAPE_SMOLLM2_135M] = {.geometry = {576, 30, 9, 3, 64, 1536, 49152, 1e-5f},
                                .max_positions = 8192,
                                .tied = true,
                                .rope = DEFAULT_ROPE(100000),
                                .extras = 0},
    [MGL_SHAPE_QWEN2_5_0_5B] = {.geometry = {896, 24, 14, 2, 64, 4864, 151936, 1e-6f},
                                .max_positions = 32768,
                                .tied = true,
                                .rope = DEFAULT_ROPE(1e6f),
                                .extras = MGL_EXTRA_QKV_BIAS},
    [MGL_SHAPE_QWEN3_0_6B] = {.geometry = {1024, 28, 16, 8, 128, 3072, 151936, 1e-6f},
                              .max_positions = 40960,
                              .tied = true,
                              .rope = DEFAULT_ROPE(1e6f),
                              .extras = MGL_EXTRA_QK_NORM},
    [MGL_SHAPE_TINYLLAMA_1_1B] = {.geometry = {2048, 22, 32, 4, 64, 5632, 32000, 1e-5f},
                                  .max_positions = 2048,
                                  .tied = false,
                                  .rope = DEFAULT_ROPE(1e4f),
                                  .extras = 0},
};

static const char *const names[] = {
#define MGL_X(id, name) name,
    MGL_SHAPES(MGL_X)
#undef MGL_X
};

mgl_status mgl_synthetic_find_shape(const char *name, mgl_config *out, mgl_error *err)
{
    mgl_text known = {0};
    for (int i = 0; i < MGL_SHAPE_COUNT; i++) {
        if (!strcmp(names[i], name)) {
            *out = configs[i];
            mgl_text_clear(&known);
            return MGL_OK;
        }
        mgl_text_format(&known, "%s%s", i ? ", " : "", names[i]);
    }
    mgl_status status = mgl_fail(err, MGL_USAGE, name, "unknown shape; there are %s",
                                 known.bytes ? known.bytes : "several");
    mgl_text_clear(&known);
    return status;
}

/* value * to / from; 0 if that is not an integer. */
static int32_t in_proportion(int32_t value, int32_t to, int32_t from)
{
    int64_t product = (int64_t)value * to;
    return product % from || product / from > INT32_MAX ? 0 : (int32_t)(product / from);
}

mgl_status mgl_synthetic_widen(mgl_config *config, int hidden, mgl_error *err)
{
    mgl_geometry m = config->geometry;
    m.heads = in_proportion(m.heads, hidden, config->geometry.hidden);
    m.kv_heads = in_proportion(m.kv_heads, hidden, config->geometry.hidden);
    m.ffn = in_proportion(m.ffn, hidden, config->geometry.hidden);
    m.hidden = hidden;
    if (m.heads < 1 || m.kv_heads < 1 || m.ffn < 1)
        return mgl_fail(err, MGL_USAGE, "hidden",
                        "%d: heads, kv_heads and ffn of %d, %d and %d at %d do not come out even",
                        hidden, config->geometry.heads, config->geometry.kv_heads,
                        config->geometry.ffn, config->geometry.hidden);
    config->geometry = m;
    return MGL_OK;
}

/* ---- config.json ---------------------------------------------------------------------------- */

enum { MAX_CONFIG = 1 << 20 }; /* bytes of a config.json */

/* Reads the config.json of a compiled model. */
static mgl_status read_compiled(const char *path, mgl_json *out, mgl_error *err)
{
    mgl_mega *mega;
    char *text = NULL;
    size_t length;
    mgl_status status = mgl_mega_open(path, &mega, err);
    if (status)
        return status;
    status = mgl_mega_read(mega, MGL_MEGA_CONFIG, &text, &length, err);
    if (!status)
        status = mgl_json_parse_python(text, length, MAX_CONFIG, path, out, err);
    mgl_free(text);
    mgl_mega_close(mega);
    return status;
}

/* Whether config.json declares a quantization, or a file beside it does (older checkpoints of GPTQ
 * and AWQ). */
static bool declares_quantization(const mgl_json *json, const char *path)
{
    static const char *const keys[] = {"quantization_config", "compression_config"};
    static const char *const files[] = {"quantize_config.json", "quant_config.json"};
    bool found = false;
    mgl_text beside = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const cJSON *own = mgl_json_member(json->root, keys[i]);
        found |= own && !cJSON_IsNull(own);
    }
    const char *name = strrchr(path, '/');
    for (size_t i = 0; i < sizeof files / sizeof *files && !found; i++) {
        mgl_text_clear(&beside);
        mgl_text_format(&beside, "%.*s%s", name ? (int)(name + 1 - path) : 0, path, files[i]);
        found = !beside.failed && !access(beside.bytes, F_OK);
    }
    mgl_text_clear(&beside);
    return found;
}

/* The formats of a model must be those of a synthetic one, which are fewer. */
static mgl_status check_formats(const mgl_graph *graph, const char *path, mgl_config *out,
                                mgl_error *err)
{
    char layers[MGL_WEIGHT_FORMAT_TEXT], own[MGL_WEIGHT_FORMAT_TEXT];
    const int other = mgl_graph_find_formats(graph, &out->layers, &out->head);
    if (other >= 0 && graph->tensors[other].reordered)
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the columns of a matrix are reordered (g_idx): %s; synthetic weights "
                        "have no column order: give a model without activation order",
                        graph->tensors[other].name);
    if (other >= 0)
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the layers have several weight formats: %s, and %s of %s; synthetic "
                        "weights have one: give a model with one format",
                        mgl_weight_format_print(out->layers, layers),
                        mgl_weight_format_print(mgl_tensor_format(&graph->tensors[other]), own),
                        graph->tensors[other].name);
    if (mgl_weight_format_has_minimums(out->layers) || mgl_weight_format_has_minimums(out->head))
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the weights have minimums (Q4_1), which synthetic weights do not have; "
                        "give a model in another format");
    if (graph->tied && mgl_weight_format_is_scaled(out->head))
        return mgl_fail(err, MGL_BAD_INPUT, path,
                        "the head is a quantized embedding, which synthetic weights do not have; "
                        "give a model with a separate head");
    return MGL_OK;
}

/* Reads the weight formats of a quantized model from its files. */
static mgl_status read_formats(const char *path, mgl_config *out, mgl_error *err)
{
    mgl_checkpoint *checkpoint;
    mgl_status status = mgl_import(path, &checkpoint, err);
    if (status)
        return status;
    status = check_formats(checkpoint->graph, path, out, err);
    out->tied = checkpoint->graph->tied;
    mgl_checkpoint_close(checkpoint);
    return status;
}

/* Reads a config.json of `folder`, or of a compiled model. NULL: a config.json alone. */
static mgl_status read_config_file(const char *path, const char *folder, mgl_config *out,
                                   mgl_error *err)
{
    mgl_json json = {0};
    mgl_reasons reasons = {0};
    bool compiled, quantized;
    mgl_status status = mgl_mega_stands(path, &compiled, err);
    if (!status)
        status = compiled ? read_compiled(path, &json, err)
                          : mgl_json_read_python(path, MAX_CONFIG, &json, err);
    if (status)
        return status;
    status = mgl_config_read(&json, out, &reasons, err);
    if (!status)
        status = mgl_reasons_fail(&reasons, err);
    quantized = !status && !compiled && declares_quantization(&json, path);
    if (quantized && !folder)
        status = mgl_fail(err, MGL_BAD_INPUT, path,
                          "the model is quantized, and its weight formats are in its other files; "
                          "give the folder of the model");
    if (!status && (compiled || quantized))
        status = read_formats(compiled ? path : folder, out, err);
    mgl_reasons_clear(&reasons);
    mgl_json_clear(&json);
    return status;
}

/* Reads the config.json of a folder in Hugging Face layout. */
static mgl_status read_folder(const char *folder, mgl_config *out, mgl_error *err)
{
    mgl_text file = {0};
    mgl_status status = mgl_layout_check_folder(folder, err);
    mgl_text_format(&file, "%s/config.json", folder);
    if (!status)
        status = file.failed ? mgl_fail_memory(err, file.length)
                             : read_config_file(file.bytes, folder, out, err);
    mgl_text_clear(&file);
    return status;
}

/* Rejects a GGUF file, which has no config.json of its own. */
static mgl_status check_not_gguf(const char *path, mgl_error *err)
{
    bool is_gguf;
    mgl_status status = mgl_gguf_stands(path, &is_gguf, err);
    return status || !is_gguf ? status
                              : mgl_fail(err, MGL_BAD_INPUT, path,
                                         "is a GGUF file, whose shape is not read here; give the "
                                         "model in Hugging Face layout, or its config.json");
}

mgl_status mgl_synthetic_read_config(const char *path, mgl_config *out, mgl_error *err)
{
    struct stat about;
    char *found = NULL;
    const bool is_file = !stat(path, &about) && S_ISREG(about.st_mode);
    mgl_status status = is_file ? MGL_OK : mgl_model_find(path, &found, err);
    if (!status)
        status = check_not_gguf(is_file ? path : found, err);
    if (!status)
        status = is_file ? read_config_file(path, NULL, out, err) : read_folder(found, out, err);
    if (!status && out->tied)
        status = mgl_checkpoint_find_tie(is_file ? path : found, out, err);
    mgl_free(found);
    return status;
}

/* ---- text of formats ------------------------------------------------------------------------ */

static mgl_status parse_format(const mgl_json *json, const cJSON *from, const char *key,
                               mgl_weight_format *out, mgl_error *err)
{
    const char *text = NULL;
    mgl_status status = mgl_json_get_string(json, from, key, true, &text, err);
    if (status)
        return status;
    const char *at = text, *end = text + strlen(text);
    const bool read = mgl_weight_format_read(&at, end, out) == MGL_FORMAT_READ && at == end;
    if (!read || mgl_weight_format_has_minimums(*out) ||
        !(mgl_weight_format_is_scaled(*out) || out->code == MGL_CODE_BF16))
        return mgl_fail(
            err, MGL_BAD_INPUT, json->file,
            "unknown weight format: %s = \"%.60s\"; supported: bf16, and int8, int4 and "
            "e4m3 with scales, such as \"int4 group 128 f16\"",
            key, text);
    if (!mgl_weight_format_is_scaled(*out))
        *out = (mgl_weight_format){0};
    return MGL_OK;
}

mgl_status mgl_synthetic_parse_formats(const mgl_json *json, mgl_config *out, mgl_error *err)
{
    const cJSON *from = mgl_json_member(json->root, MGL_SYNTHETIC_FORMATS);
    const char *method = NULL;
    if (!from || cJSON_IsNull(from))
        return MGL_OK;
    mgl_status status =
        mgl_json_get_object(json, json->root, MGL_SYNTHETIC_FORMATS, true, &from, err);
    if (!status)
        status = mgl_json_get_string(json, from, "quant_method", true, &method, err);
    if (!status && strcmp(method, MGL_SYNTHETIC_METHOD) != 0)
        status = mgl_fail(err, MGL_BAD_INPUT, json->file,
                          "the weight formats of a quantized checkpoint are in its other files: "
                          "quant_method = \"%.40s\"; give the model itself, or quant_method \"%s\" "
                          "with the keys layers and head",
                          method, MGL_SYNTHETIC_METHOD);
    if (!status)
        status = parse_format(json, from, "layers", &out->layers, err);
    if (!status)
        status = parse_format(json, from, "head", &out->head, err);
    if (!status && out->tied && mgl_weight_format_is_scaled(out->head))
        status = mgl_fail(err, MGL_BAD_INPUT, json->file,
                          "a head with scales is tied to the embedding; set tie_word_embeddings to "
                          "false");
    return status;
}

const char *mgl_synthetic_print_format(mgl_weight_format format, char to[MGL_WEIGHT_FORMAT_TEXT])
{
    if (!mgl_weight_format_is_scaled(format))
        format = mgl_weight_format_of(MGL_BF16);
    return mgl_weight_format_print(format, to);
}

bool mgl_synthetic_is_quantized(const mgl_config *config)
{
    return mgl_weight_format_is_scaled(config->layers) || mgl_weight_format_is_scaled(config->head);
}

const char *mgl_synthetic_print_formats(const mgl_config *config, char to[MGL_SYNTHETIC_TEXT])
{
    char layers[MGL_WEIGHT_FORMAT_TEXT], head[MGL_WEIGHT_FORMAT_TEXT];
    to[0] = 0;
    if (mgl_synthetic_is_quantized(config))
        mgl_format_into(to, MGL_SYNTHETIC_TEXT, "%s, head %s",
                        mgl_synthetic_print_format(config->layers, layers),
                        mgl_synthetic_print_format(config->head, head));
    return to;
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Reader state of a synthetic graph. */
typedef struct source {
    uint64_t seed;
    mgl_synthetic_kind kind;
} source;

static const source *source_of(const mgl_graph *graph)
{
    return graph->reader;
}

const char *mgl_synthetic_kind_name(mgl_synthetic_kind kind)
{
    static const char *const kinds[] = {
#define MGL_X(id, name, what) name,
        MGL_SYNTHETIC_KINDS(MGL_X)
#undef MGL_X
    };
    return kinds[kind];
}

static uint64_t make_key(const mgl_graph *graph, uint64_t tensor)
{
    uint64_t seed = source_of(graph)->seed;
    return mgl_synthetic_mix(mgl_synthetic_mix(seed + 0x9E3779B97F4A7C15) + tensor);
}

/* The standard deviation of a draw: four uniform numbers from 0 to 127. */
static double drawn_spread(void)
{
    return sqrt(4.0 * (128.0 * 128.0 - 1.0) / 12.0);
}

/* The power of two that brings the standard deviation of a draw closest to `spread`. */
static float choose_scale(double spread)
{
    return ldexpf(1.0f, (int)lround(log2(spread / drawn_spread())));
}

/* Changes a rule to a scaled format with about the same standard deviation. One step of a code is
 * 2, 4 or 32 steps of a draw. */
static void take_format(const mgl_tensor *t, mgl_synthetic_rule *rule)
{
    const mgl_weight_format f = t->quantized;
    const int steps = f.code == MGL_CODE_INT4 ? 32 : f.code == MGL_CODE_INT8 ? 2 : 4;
    rule->bits = mgl_weight_code_get(f.code)->bits;
    rule->e4m3 = f.code == MGL_CODE_E4M3;
    rule->group = f.group;
    rule->group_rows = f.group_rows;
    rule->zeros = f.zeros;
    rule->cols = (int)t->cols;
    rule->scale *= ldexpf((float)steps, -8); /* scales: 128 to 255 times this; * 2^-8: 0.75 */
}

/* Factor of large values, and inverse factor of small ones. */
static const float far = 64;

/* Adjusts a rule to the graph's kind of values. */
static void take_kind(const mgl_graph *graph, mgl_synthetic_rule *rule)
{
    mgl_synthetic_kind kind = source_of(graph)->kind;
    if (kind == MGL_SYNTHETIC_MIXED) {
        static const mgl_synthetic_kind kinds[] = {MGL_SYNTHETIC_LARGE, MGL_SYNTHETIC_DENSE,
                                                   MGL_SYNTHETIC_SMALL};
        kind = kinds[rule->key % 3];
    }
    if (kind == MGL_SYNTHETIC_LARGE)
        rule->scale *= far;
    else if (kind == MGL_SYNTHETIC_SMALL)
        rule->scale /= far;
    else if (kind == MGL_SYNTHETIC_ZERO)
        rule->scale = 0;
    else if (kind == MGL_SYNTHETIC_EQUAL) { /* shift 16 leaves nothing of a draw */
        rule->offset = 64;
        rule->shift = 16;
    }
}

/* Whether a tensor contributes to attention scores. Larger scores concentrate softmax on one
 * position, and rounding would decide which. */
static bool makes_scores(const char *name)
{
    return strstr(name, "q_proj.") || strstr(name, "k_proj.");
}

/* Whether a tensor is the weight or bias of a product that adds to the residual stream. */
static bool adds_to_residual(const char *name)
{
    return mgl_text_ends(name, "o_proj.weight") || mgl_text_ends(name, "o_proj.bias") ||
           mgl_text_ends(name, "down_proj.weight") || mgl_text_ends(name, "down_proj.bias");
}

/* Matrices preserve the magnitude of their input. Biases are half as large as what they are added
 * to. Tensors that add to the residual stream are scaled down by the square root of twice the
 * number of layers. */
mgl_synthetic_rule mgl_synthetic_tensor_rule(const mgl_graph *graph, int tensor)
{
    const mgl_tensor *t = &graph->tensors[tensor];
    mgl_synthetic_rule rule = {.key = make_key(graph, (uint64_t)tensor)};
    bool bias = mgl_text_ends(t->name, ".bias");
    if (t->rank == 1 && !bias) { /* 0.5 to 1.5 */
        rule.offset = 64;
        rule.shift = 2;
        rule.scale = 0x1p-7f;
        return rule;
    }
    double spread = bias ? 0.5 : 1 / sqrt((double)t->cols);
    if (adds_to_residual(t->name))
        spread /= sqrt(2.0 * (double)graph->geometry.layers);
    rule.offset = -MGL_SYNTHETIC_MEAN;
    rule.scale = choose_scale(spread);
    const mgl_synthetic_kind kind = source_of(graph)->kind;
    if (!makes_scores(t->name) || kind == MGL_SYNTHETIC_ZERO || kind == MGL_SYNTHETIC_EQUAL)
        take_kind(graph, &rule);
    if (mgl_tensor_is_quantized(t))
        take_format(t, &rule);
    return rule;
}

/* Attention over n positions is a mean whose magnitude decreases with the square root of n. The
 * effect of an attention error on the logits would decrease too. Cached values therefore grow with
 * the square root. */
mgl_synthetic_rule mgl_synthetic_cache_rule(const mgl_graph *graph, int layer, bool value,
                                            int positions)
{
    uint64_t tensor = (uint64_t)CACHE_TENSORS + 2 * (uint64_t)layer + value;
    double spread = value && positions > 4 ? sqrt((double)positions) / 2 : 1;
    mgl_synthetic_rule rule = {.key = make_key(graph, tensor),
                               .offset = -MGL_SYNTHETIC_MEAN,
                               .scale = choose_scale(spread)};
    const mgl_synthetic_kind kind = source_of(graph)->kind;
    if (value || kind == MGL_SYNTHETIC_ZERO || kind == MGL_SYNTHETIC_EQUAL)
        take_kind(graph, &rule);
    return rule;
}

static mgl_status read_synthetic(const mgl_graph *graph, int tensor, int64_t row, int64_t count,
                                 void *to, mgl_error *err)
{
    (void)err;
    const mgl_tensor *t = &graph->tensors[tensor];
    mgl_synthetic_rule rule = mgl_synthetic_tensor_rule(graph, tensor);
    uint16_t *bits = to;
    float *floats = to;
    uint64_t first = (uint64_t)(row * t->cols), elements = (uint64_t)(count * t->cols);
    for (uint64_t i = 0; i < elements; i++)
        if (rule.bits)
            floats[i] = mgl_synthetic_value(&rule, first + i);
        else
            bits[i] = mgl_synthetic_16(&rule, first + i);
    return MGL_OK;
}

static mgl_status read_synthetic_codes(const mgl_graph *graph, int tensor, int64_t row,
                                       int64_t count, const mgl_quantized_rows *to, mgl_error *err)
{
    (void)err;
    const mgl_tensor *t = &graph->tensors[tensor];
    const mgl_synthetic_rule rule = mgl_synthetic_tensor_rule(graph, tensor);
    const int64_t groups = mgl_weight_format_groups(t->quantized, t->cols);
    for (int64_t i = 0; i < count * t->cols; i++)
        to->codes[i] = (uint8_t)mgl_synthetic_code(&rule, (uint64_t)(row * t->cols + i));
    for (int64_t i = 0; i < count * groups; i++) {
        const int own = (int)(row + i / groups), group = (int)(i % groups);
        to->scales[i] = mgl_synthetic_scale(&rule, own, group);
        if (to->zeros)
            to->zeros[i] = (uint8_t)mgl_synthetic_zero(&rule, own, group);
    }
    return MGL_OK;
}

mgl_status mgl_synthetic_set_formats(mgl_graph *graph, mgl_weight_format layers,
                                     mgl_weight_format head, mgl_error *err)
{
    if (graph->tied && mgl_weight_format_is_scaled(head))
        return mgl_fail(err, MGL_USAGE, "head",
                        "the head is tied to the embedding, which is bf16; use a model with a "
                        "separate head");
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *node = &graph->nodes[i];
        if (node->kind != MGL_NODE_LINEAR)
            continue;
        mgl_tensor *t = &graph->tensors[node->tensor];
        const mgl_weight_format format = mgl_graph_is_head(graph, node->tensor) ? head : layers;
        const bool scaled = mgl_weight_format_is_scaled(format);
        t->quantized = scaled ? format : (mgl_weight_format){0};
        t->dtype = scaled ? MGL_F32 : MGL_BF16;
    }
    graph->read_codes = read_synthetic_codes;
    return MGL_OK;
}

void mgl_synthetic_choose_formats(mgl_config *config, mgl_weight_format layers,
                                  mgl_weight_format head)
{
    config->layers = layers;
    config->head = head;
    config->tied = config->tied && !mgl_weight_format_is_scaled(head);
}

mgl_status mgl_synthetic_open(const mgl_config *config, uint64_t seed, mgl_graph **out,
                              mgl_error *err)
{
    *out = NULL;
    source *reader = mgl_alloc_zero(1, sizeof *reader);
    if (!reader)
        return mgl_fail_memory(err, sizeof *reader);
    reader->seed = seed;
    mgl_status status = mgl_config_build_graph(config, MGL_BF16, out, err);
    if (status) {
        mgl_free(reader);
        return status;
    }
    (*out)->read = read_synthetic;
    (*out)->reader = reader;
    (*out)->close_reader = mgl_free;
    if (mgl_synthetic_is_quantized(config))
        status = mgl_synthetic_set_formats(*out, config->layers, config->head, err);
    if (status) {
        mgl_graph_free(*out);
        *out = NULL;
    }
    return status;
}

void mgl_synthetic_set_seed(mgl_graph *graph, uint64_t seed)
{
    ((source *)graph->reader)->seed = seed;
}

void mgl_synthetic_set_kind(mgl_graph *graph, mgl_synthetic_kind kind)
{
    ((source *)graph->reader)->kind = kind;
}

double mgl_synthetic_streamed_bytes(const mgl_graph *graph, int sequences, double positions)
{
    const mgl_geometry *m = &graph->geometry;
    double size = (double)mgl_dtype_size(MGL_BF16), bytes = 0;
    for (int i = 0; i < graph->node_count; i++) {
        const mgl_node *node = &graph->nodes[i];
        if (node->kind != MGL_NODE_LINEAR && node->kind != MGL_NODE_BIAS)
            continue;
        const mgl_tensor *t = &graph->tensors[node->tensor];
        const double weights = (double)t->rows * (double)t->cols;
        bytes += mgl_tensor_is_quantized(t)
                     ? weights * mgl_weight_format_bits(t->quantized, t->rows, t->cols) / 8
                     : weights * size;
    }
    double position = 2.0 * (double)m->layers * (double)m->kv_heads * (double)m->head_dim * size;
    return bytes + (double)sequences * positions * position;
}
