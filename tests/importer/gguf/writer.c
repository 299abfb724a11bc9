/* Writes GGUF files. See writer.h. */
#include "tests/importer/gguf/writer.h"

#include "base/dtype.h"
#include "base/json.h"
#include "importer/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

void gguf_put(mgl_text *to, const void *bytes, size_t length)
{
    mgl_text_append(to, bytes, length);
}

void gguf_put_u32(mgl_text *to, uint32_t value)
{
    gguf_put(to, &value, sizeof value);
}

void gguf_put_u64(mgl_text *to, uint64_t value)
{
    gguf_put(to, &value, sizeof value);
}

void gguf_put_text(mgl_text *to, const char *text)
{
    gguf_put_u64(to, strlen(text));
    gguf_put(to, text, strlen(text));
}

static void start_key(gguf_writer *w, const char *key, uint32_t type)
{
    w->key_count++;
    gguf_put_text(&w->keys, key);
    gguf_put_u32(&w->keys, type);
}

void gguf_key_u32(gguf_writer *w, const char *key, uint32_t value)
{
    start_key(w, key, GGUF_U32);
    gguf_put_u32(&w->keys, value);
}

void gguf_key_f32(gguf_writer *w, const char *key, float value)
{
    start_key(w, key, GGUF_F32);
    gguf_put(&w->keys, &value, sizeof value);
}

void gguf_key_bool(gguf_writer *w, const char *key, bool value)
{
    start_key(w, key, GGUF_BOOL);
    gguf_put(&w->keys, &(uint8_t){value}, 1);
}

void gguf_key_text(gguf_writer *w, const char *key, const char *value)
{
    start_key(w, key, GGUF_STRING);
    gguf_put_text(&w->keys, value);
}

static void start_array(gguf_writer *w, const char *key, uint32_t type, size_t count)
{
    start_key(w, key, GGUF_ARRAY);
    gguf_put_u32(&w->keys, type);
    gguf_put_u64(&w->keys, count);
}

void gguf_key_texts(gguf_writer *w, const char *key, const char *const *values, size_t count)
{
    start_array(w, key, GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        gguf_put_text(&w->keys, values[i]);
}

void gguf_key_i32s(gguf_writer *w, const char *key, const int32_t *values, size_t count)
{
    start_array(w, key, GGUF_I32, count);
    gguf_put(&w->keys, values, count * sizeof *values);
}

void gguf_key_f32s(gguf_writer *w, const char *key, const float *values, size_t count)
{
    start_array(w, key, GGUF_F32, count);
    gguf_put(&w->keys, values, count * sizeof *values);
}

static void pad(mgl_text *text, size_t length, size_t alignment)
{
    static const char zeros[64];
    while (length++ % alignment)
        gguf_put(text, zeros, 1);
}

static size_t alignment_of(const gguf_writer *w)
{
    return w->alignment ? w->alignment : 32;
}

void gguf_tensor(gguf_writer *w, const char *name, uint32_t type, uint64_t rows, uint64_t columns,
                 const void *bytes, size_t length)
{
    w->tensor_count++;
    gguf_put_text(&w->tensors, name);
    gguf_put_u32(&w->tensors, rows ? 2 : 1);
    gguf_put_u64(&w->tensors, columns);
    if (rows)
        gguf_put_u64(&w->tensors, rows);
    gguf_put_u32(&w->tensors, type);
    gguf_put_u64(&w->tensors, w->data.length);
    gguf_put(&w->data, bytes, length);
    pad(&w->data, w->data.length, alignment_of(w));
}

bool gguf_finish(gguf_writer *w, const char *path)
{
    mgl_text file = {0};
    gguf_put(&file, "GGUF", 4);
    gguf_put_u32(&file, w->version ? w->version : 3);
    gguf_put_u64(&file, w->tensor_count);
    gguf_put_u64(&file, w->key_count);
    gguf_put(&file, w->keys.bytes, w->keys.length);
    gguf_put(&file, w->tensors.bytes, w->tensors.length);
    pad(&file, file.length, alignment_of(w));
    gguf_put(&file, w->data.bytes, w->data.length);
    FILE *out = fopen(path, "wb");
    bool good = out && fwrite(file.bytes, 1, file.length, out) == file.length;
    good = out && !fclose(out) && good && !file.failed;
    mgl_text_clear(&file);
    mgl_text_clear(&w->keys);
    mgl_text_clear(&w->tensors);
    mgl_text_clear(&w->data);
    return good;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static const gguf_block blocks[] = {
    {"F32", 0, 1, 4},       {"F16", 1, 1, 2},       {"BF16", 30, 1, 2},
    {"Q4_0", 2, 32, 18},    {"Q4_1", 3, 32, 20},    {"Q8_0", 8, 32, 34},
    {"Q4_K", 12, 256, 144}, {"Q6_K", 14, 256, 210}, {"Q5_0", 6, 32, 22},
};

const gguf_block *gguf_find_block(const char *name)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (!strcmp(blocks[i].name, name))
            return &blocks[i];
    return NULL;
}

static float half(const uint8_t *at)
{
    return mgl_f16_to_f32((uint16_t)(at[0] | at[1] << 8));
}

static void put_half(uint8_t *at, float value)
{
    mgl_convert(at, MGL_F16, &value, MGL_F32, 1);
}

/* The 6-bit scale (0) or minimum (1) of group g of a Q4_K block. */
static unsigned six_bits(const uint8_t *packed, size_t g, int which)
{
    if (g < 4)
        return packed[g + 4 * (size_t)which] & 63;
    const unsigned low = which ? packed[g + 4] >> 4 : packed[g + 4] & 15;
    return low | (unsigned)(packed[g - 4 + 4 * (size_t)which] >> 6) << 4;
}

static float q6_k(const uint8_t *block, size_t i)
{
    const size_t part = i / 128, run = i % 128 / 32, at = i % 32;
    const uint8_t *low = block + 64 * part, *high = block + 128 + 32 * part;
    const unsigned nibble = run < 2 ? low[at + 32 * run] & 15 : low[at + 32 * (run - 2)] >> 4;
    const int q = (int)(nibble | (high[at] >> 2 * run & 3u) << 4) - 32;
    return half(block + 208) * (float)(int8_t)block[192 + i / 16] * (float)q;
}

static float q4_k(const uint8_t *block, size_t i)
{
    const size_t g = i / 32;
    const uint8_t byte = block[16 + 32 * (g / 2) + i % 32];
    const float q = (float)(g % 2 ? byte >> 4 : byte & 15);
    const float scale = half(block) * (float)six_bits(block + 4, g, 0);
    return scale * q - half(block + 2) * (float)six_bits(block + 4, g, 1);
}

float gguf_block_number(const gguf_block *type, const uint8_t *block, size_t i)
{
    float number;
    switch (type->number) {
    case 0:
        memcpy(&number, block, sizeof number);
        return number;
    case 1:
        return half(block);
    case 30:
        return mgl_bf16_to_f32((uint16_t)(block[0] | block[1] << 8));
    case 2:
        return (float)((i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4) - 8) * half(block);
    case 3:
        return (float)(i < 16 ? block[4 + i] & 15 : block[4 + i - 16] >> 4) * half(block) +
               half(block + 2);
    case 8:
        return (float)(int8_t)block[2 + i] * half(block);
    case 12:
        return q4_k(block, i);
    default:
        return q6_k(block, i);
    }
}

/* Blocks of 256: drawn bytes with small scales, as every bit pattern is a valid block. */
static void draw_block(const gguf_block *type, const float *weights, uint8_t *to)
{
    uint32_t state = 1;
    for (size_t i = 0; i < type->weights; i++)
        state = state * 31 + (uint32_t)(int32_t)(weights[i] * 4096);
    for (size_t i = 0; i < type->bytes; i++) {
        state = state * 1664525 + 1013904223;
        to[i] = (uint8_t)(state >> 24);
    }
    if (type->number == 12) {
        put_half(to, 0.00012f);
        put_half(to + 2, 0.001f);
    } else {
        put_half(to + 208, 0.00002f);
    }
}

static void quantize_block(const gguf_block *type, const float *w, uint8_t *to)
{
    float low = w[0], high = w[0], scale;
    for (size_t i = 0; i < type->weights; i++) {
        low = w[i] < low ? w[i] : low;
        high = w[i] > high ? w[i] : high;
    }
    const float most = -low > high ? -low : high;
    memset(to, 0, type->bytes);
    scale = type->number == 8 ? most / 127 : type->number == 2 ? most / 7 : (high - low) / 15;
    put_half(to, scale);
    scale = half(to) > 0 ? half(to) : 1;
    if (type->number == 3)
        put_half(to + 2, low);
    for (size_t i = 0; i < type->weights; i++) {
        const float shift = type->number == 3 ? half(to + 2) : 0;
        const long code = lrintf((w[i] - shift) / scale);
        if (type->number == 8) {
            to[2 + i] = (uint8_t)(int8_t)(code > 127 ? 127 : code < -128 ? -128 : code);
            continue;
        }
        const long lifted = type->number == 2 ? code + 8 : code;
        const unsigned nibble = lifted < 0 ? 0 : lifted > 15 ? 15 : (unsigned)lifted;
        to[(type->number == 3 ? 4 : 2) + i % 16] |= (uint8_t)(nibble << (i < 16 ? 0 : 4));
    }
}

void gguf_quantize(const gguf_block *type, const float *weights, size_t count, uint8_t *to)
{
    static const struct {
        uint32_t number;
        mgl_dtype dtype;
    } plain[] = {{0, MGL_F32}, {1, MGL_F16}, {30, MGL_BF16}};
    for (size_t i = 0; i < 3; i++)
        if (plain[i].number == type->number) {
            mgl_convert(to, plain[i].dtype, weights, MGL_F32, count);
            return;
        }
    for (size_t i = 0; i < count / type->weights; i++)
        if (type->weights == 256)
            draw_block(type, weights + i * 256, to + i * type->bytes);
        else
            quantize_block(type, weights + i * type->weights, to + i * type->bytes);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* "model.layers.3.mlp.up_proj.weight" becomes "blk.3.ffn_up.weight". */
static void translate(const char *name, char to[96])
{
    static const struct {
        const char *from, *to;
    } parts[] = {{"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
                 {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
                 {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
                 {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
                 {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
                 {"mlp.down_proj", "ffn_down"}};
    int layer, used = 0;
    if (!strcmp(name, "model.embed_tokens.weight"))
        strcpy(to, "token_embd.weight");
    else if (!strcmp(name, "model.norm.weight"))
        strcpy(to, "output_norm.weight");
    else if (!strcmp(name, "lm_head.weight"))
        strcpy(to, "output.weight");
    else if (sscanf(name, "model.layers.%d.%n", &layer, &used) == 1)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (!strncmp(name + used, parts[i].from, strlen(parts[i].from)))
                snprintf(to, 96, "blk.%d.%s%s", layer, parts[i].to,
                         name + used + strlen(parts[i].from));
}

/* The order of llama: row 2 i + h of a head is row h * (size / 2) + i of the model. */
static void permute(const mgl_tensor *t, int32_t size, const float *from, float *to)
{
    for (int64_t row = 0; row < t->rows; row++) {
        const int64_t at = row % size, source = row - at + at % 2 * (size / 2) + at / 2;
        memcpy(to + row * t->cols, from + source * t->cols, (size_t)t->cols * sizeof *to);
    }
}

static bool put_tensor(gguf_writer *w, const gguf_model *model, const mgl_graph *graph, int index)
{
    const mgl_tensor *t = &graph->tensors[index];
    const size_t count = (size_t)(t->rows * t->cols);
    char name[96] = "";
    float *stored = calloc(count, 4), *weights = calloc(count, 4), *order = calloc(count, 4);
    bool good = stored && weights && order && !graph->read(graph, index, 0, t->rows, stored, NULL);
    if (good)
        mgl_convert(weights, MGL_F32, stored, t->dtype, count);
    translate(t->name, name);
    const bool is_permuted =
        !model->architecture && (strstr(name, ".attn_q.") || strstr(name, ".attn_k."));
    if (good && is_permuted)
        permute(t, graph->geometry.head_dim, weights, order);
    const char *type = t->rank == 1                                         ? "F32"
                       : model->table && !strcmp(name, "token_embd.weight") ? model->table
                       : model->down && strstr(name, ".ffn_down.")          ? model->down
                                                                            : model->matrices;
    const gguf_block *block = gguf_find_block(type);
    const size_t bytes = count / block->weights * block->bytes;
    uint8_t *to = calloc(bytes, 1);
    if (good && to) {
        gguf_quantize(block, is_permuted ? order : weights, count, to);
        gguf_tensor(w, name, block->number, t->rank == 1 ? 0 : (uint64_t)t->rows, (uint64_t)t->cols,
                    to, bytes);
    }
    free(stored);
    free(weights);
    free(order);
    free(to);
    return good && to && *name;
}

static void put_tokenizer(gguf_writer *w, const char *folder)
{
    static const char *texts[4096], *merges[4096];
    static int32_t types[4096];
    char path[256];
    mgl_json json;
    size_t count = 0, merge_count = 0;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (mgl_json_read_regular(path, 1 << 24, &json, NULL))
        return;
    const cJSON *model = mgl_json_member(json.root, "model"), *item;
    cJSON_ArrayForEach(item, mgl_json_member(model, "vocab"))
    {
        texts[item->valueint] = item->string;
        types[item->valueint] = 1;
        count++;
    }
    cJSON_ArrayForEach(item, mgl_json_member(json.root, "added_tokens"))
    {
        const int id = mgl_json_member(item, "id")->valueint;
        count += !texts[id];
        texts[id] = mgl_json_member(item, "content")->valuestring;
        types[id] = 3;
    }
    static char joined[4096][64];
    cJSON_ArrayForEach(item, mgl_json_member(model, "merges"))
    {
        if (cJSON_IsString(item))
            merges[merge_count] = item->valuestring;
        else {
            snprintf(joined[merge_count], sizeof *joined, "%s %s", item->child->valuestring,
                     item->child->next->valuestring);
            merges[merge_count] = joined[merge_count];
        }
        merge_count++;
    }
    gguf_key_texts(w, "tokenizer.ggml.tokens", texts, count);
    gguf_key_i32s(w, "tokenizer.ggml.token_type", types, count);
    gguf_key_texts(w, "tokenizer.ggml.merges", merges, merge_count);
    memset(texts, 0, sizeof texts);
    mgl_json_clear(&json);
}

/* Writes a text key, which a test may replace. */
static void put_text(gguf_writer *w, const gguf_model *model, const char *key, const char *value)
{
    if (!model->skip_key || strcmp(model->skip_key, key) != 0)
        gguf_key_text(w, key,
                      model->replace_key && !strcmp(model->replace_key, key) ? model->replace_text
                                                                             : value);
}

static void put_u32(gguf_writer *w, const gguf_model *model, const char *key, int64_t value)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", model->architecture ? model->architecture : "llama", key);
    if (!model->skip_key || strcmp(model->skip_key, full) != 0)
        gguf_key_u32(w, full, (uint32_t)value);
}

static void put_config(gguf_writer *w, const gguf_model *model, const mgl_graph *graph)
{
    const mgl_geometry *g = &graph->geometry;
    char key[96];
    const char *name = model->architecture ? model->architecture : "llama";
    put_text(w, model, "general.architecture", name);
    put_text(w, model, "general.type", "model");
    put_u32(w, model, "embedding_length", g->hidden);
    put_u32(w, model, "block_count", g->layers);
    put_u32(w, model, "feed_forward_length", g->ffn);
    put_u32(w, model, "attention.head_count", g->heads);
    put_u32(w, model, "attention.head_count_kv", g->kv_heads);
    put_u32(w, model, "context_length", graph->max_positions);
    put_u32(w, model, "rope.dimension_count", g->head_dim);
    put_u32(w, model, "attention.key_length", g->head_dim);
    put_u32(w, model, "attention.value_length", g->head_dim);
    put_u32(w, model, "vocab_size", g->vocab);
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", name);
    if (!model->skip_key || strcmp(model->skip_key, key) != 0)
        gguf_key_f32(w, key, g->eps);
    snprintf(key, sizeof key, "%s.rope.freq_base", name);
    gguf_key_f32(w, key, model->theta > 0 ? model->theta : 10000);
}

bool gguf_write_model(const gguf_model *model, const char *path)
{
    gguf_writer w = {0};
    mgl_checkpoint *checkpoint = NULL;
    if (mgl_import(model->folder, &checkpoint, NULL))
        return false;
    const mgl_graph *graph = checkpoint->graph;
    put_config(&w, model, graph);
    if (!model->no_tokenizer) {
        put_text(&w, model, "tokenizer.ggml.model", "gpt2");
        put_text(&w, model, "tokenizer.ggml.pre", "llama-bpe");
        put_tokenizer(&w, model->folder);
        gguf_key_u32(&w, "tokenizer.ggml.bos_token_id", 909);
        gguf_key_u32(&w, "tokenizer.ggml.eos_token_id", 910);
        gguf_key_text(&w, "tokenizer.chat_template",
                      "{{ bos_token }}{% for m in messages %}<|eot_id|>{{ m['content'] }}"
                      "{{ eos_token }}{% endfor %}");
    }
    bool good = true;
    for (int i = 0; i < graph->tensor_count && good; i++)
        good = put_tensor(&w, model, graph, i);
    if (model->more)
        model->more(&w);
    mgl_checkpoint_close(checkpoint);
    return gguf_finish(&w, path) && good;
}
