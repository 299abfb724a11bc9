/*
 * tales-5m as a GGUF file in every supported type, compared with the folder: every weight, the
 * formats, tokens of replies, the tokenizer, the chat template, and the file compiled to .mega.
 */
#include "megalith.h"

#include "base/file.h"
#include "importer/checkpoint.h"
#include "tests/importer/gguf/writer.h"
#include "tests/scratch.h"

#include <math.h>

#define TALES MGL_SOURCE_DIR "/tests/models/tales-5m"

static char scratch[] = "/tmp/megalith-gguf-XXXXXX";
static char path[64];
static mgl_error err;

static void set_up(void)
{
    scratch_make(scratch);
    snprintf(path, sizeof path, "%s/model.gguf", scratch);
}

static void tear_down(void)
{
    scratch_remove(scratch);
}

static void write_model(const gguf_model *model)
{
    ck_assert(gguf_write_model(model, path));
}

static mgl_checkpoint *import(const char *name)
{
    mgl_checkpoint *checkpoint = NULL;
    ck_assert_msg(mgl_import(name, &checkpoint, &err) == MGL_OK, "%s: %s", err.where, err.message);
    return checkpoint;
}

/* ---- weights --------------------------------------------------------------------------------- */

static const struct {
    const char *type, *format;
    mgl_dtype dtype; /* of the graph's matrices */
} types[] = {
    {"F32", "f32", MGL_F32},
    {"F16", "f16", MGL_F16},
    {"BF16", "bf16", MGL_BF16},
    {"Q8_0", "int8 group 32 f16", MGL_F32},
    {"Q4_0", "int4 group 32 f16", MGL_F32},
    {"Q6_K", "int8 group 16 f32", MGL_F32},
    {"Q4_1", "uint4 group 32 f16", MGL_F32},
    {"Q4_K", "uint4 group 32 f32", MGL_F32},
};
enum { TYPES = sizeof types / sizeof *types };

/* Reads a tensor as f32. */
static float *read_numbers(const mgl_graph *graph, int index)
{
    const mgl_tensor *t = &graph->tensors[index];
    const size_t count = (size_t)(t->rows * t->cols);
    char *raw = calloc(count, 4);
    float *numbers = calloc(count, 4);
    ck_assert_msg(graph->read(graph, index, 0, t->rows, raw, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
    mgl_convert(numbers, MGL_F32, raw, t->dtype, count);
    free(raw);
    return numbers;
}

/* Compares a tensor of the file with the weights of the folder after they were stored. Rows of the
 * graph are in the order of the folder, so the permuted rows of q and k are too. */
static void check_tensor(const mgl_graph *found, const mgl_graph *folder, int index,
                         const char *name)
{
    const mgl_tensor *t = &folder->tensors[index];
    const gguf_block *type = gguf_find_block(t->rank == 1 ? "F32" : name);
    const size_t count = (size_t)(t->rows * t->cols);
    float *wanted = read_numbers(folder, index), *got = read_numbers(found, index);
    uint8_t *blocks = calloc(count / type->weights, type->bytes);
    gguf_quantize(type, wanted, count, blocks);
    size_t wrong = count;
    for (size_t i = 0; i < count && wrong == count; i++) {
        const float number =
            gguf_block_number(type, blocks + i / type->weights * type->bytes, i % type->weights);
        if (memcmp(&number, &got[i], sizeof number) != 0)
            wrong = i;
    }
    ck_assert_msg(wrong == count, "%s %s: weight %zu is %.9g", name, t->name, wrong,
                  (double)got[wrong % count]);
    free(wanted);
    free(got);
    free(blocks);
}

START_TEST(test_weights)
{
    char format[MGL_WEIGHT_FORMAT_TEXT];
    write_model(&(gguf_model){.folder = TALES, .matrices = types[_i].type});
    mgl_checkpoint *folder = import(TALES), *file = import(path);
    const mgl_graph *a = folder->graph, *b = file->graph;
    ck_assert_int_eq(a->tensor_count, b->tensor_count);
    ck_assert_int_eq(b->tied, 1);
    ck_assert(mgl_geometry_equal(&a->geometry, &b->geometry));
    ck_assert_int_eq(a->max_positions, b->max_positions);
    ck_assert(!memcmp(a->inv_freq, b->inv_freq, (size_t)a->geometry.head_dim / 2 * 4));
    ck_assert_uint_eq(file->generation.end_count, 1);
    ck_assert_int_eq(file->generation.end_tokens[0], 910);
    ck_assert_str_eq(file->architecture, "LlamaForCausalLM");
    for (int i = 0; i < a->tensor_count; i++) {
        const mgl_tensor *t = &b->tensors[i];
        check_tensor(b, a, i, types[_i].type);
        if (t->rank == 2)
            ck_assert_str_eq(mgl_weight_format_print(mgl_tensor_format(t), format),
                             types[_i].format);
    }
    ck_assert_str_eq(mgl_checkpoint_stored_name(file, 1), "blk.0.attn_norm.weight");
    mgl_checkpoint_close(folder);
    mgl_checkpoint_close(file);
}
END_TEST

/* Each tensor keeps its own type. */
START_TEST(test_mixed_types)
{
    char format[MGL_WEIGHT_FORMAT_TEXT];
    write_model(&(gguf_model){.folder = TALES, .matrices = "Q4_0", .table = "Q8_0", .down = "F16"});
    mgl_checkpoint *file = import(path);
    const mgl_graph *graph = file->graph;
    static const struct {
        const char *name, *format;
    } wanted[] = {{MGL_TENSOR_EMBEDDING, "int8 group 32 f16"},
                  {"model.layers.5.mlp.down_proj.weight", "f16"},
                  {"model.layers.5.mlp.up_proj.weight", "int4 group 32 f16"}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const int index = mgl_graph_find_tensor(graph, wanted[i].name);
        ck_assert_str_eq(mgl_weight_format_print(mgl_tensor_format(&graph->tensors[index]), format),
                         wanted[i].format);
    }
    mgl_checkpoint_close(file);
}
END_TEST

#define MODELS MGL_SOURCE_DIR "/tests/models/"

static void linear_rope(gguf_writer *w)
{
    gguf_key_text(w, "llama.rope.scaling.type", "linear");
    gguf_key_f32(w, "llama.rope.scaling.factor", 2);
}

static const gguf_model families[] = {
    {.folder = MODELS "qwen2", .architecture = "qwen2", .matrices = "BF16", .theta = 1e6f},
    {.folder = MODELS "qwen3", .architecture = "qwen3", .matrices = "BF16", .theta = 1e6f},
    {.folder = MODELS "mistral", .matrices = "F32", .theta = 1e6f},
    {.folder = MODELS "llama-linear-rope", .matrices = "F16", .more = linear_rope},
};
enum { FAMILIES = sizeof families / sizeof *families };

/* Other architectures, biases, norms of q and k, untied heads, and linear rope. */
START_TEST(test_families)
{
    gguf_model model = families[_i];
    model.no_tokenizer = true;
    write_model(&model);
    mgl_checkpoint *folder = import(model.folder), *file = import(path);
    const mgl_graph *a = folder->graph, *b = file->graph;
    ck_assert_int_eq(a->tensor_count, b->tensor_count);
    ck_assert_int_eq(a->node_count, b->node_count);
    ck_assert_int_eq(a->tied, b->tied);
    ck_assert_int_eq(a->max_positions, b->max_positions);
    ck_assert(mgl_geometry_equal(&a->geometry, &b->geometry));
    ck_assert(!memcmp(a->inv_freq, b->inv_freq, (size_t)a->geometry.head_dim / 2 * 4));
    for (int i = 0; i < a->tensor_count; i++) {
        ck_assert_str_eq(a->tensors[i].name, b->tensors[i].name);
        check_tensor(b, a, i, model.matrices);
    }
    mgl_checkpoint_close(folder);
    mgl_checkpoint_close(file);
}
END_TEST

static float rope_factors[16];

static void put_factors(gguf_writer *w)
{
    gguf_tensor(w, "rope_freqs.weight", 0, 0, 16, rope_factors, sizeof rope_factors);
}

/* Llama 3.1: the factors divide the frequencies. */
START_TEST(test_rope_factors)
{
    gguf_model model = {.folder = MODELS "llama3-rope",
                        .matrices = "BF16",
                        .theta = 500000,
                        .no_tokenizer = true,
                        .more = put_factors};
    mgl_checkpoint *folder = import(model.folder);
    for (int i = 0; i < 16; i++)
        rope_factors[i] = (float)(pow(500000, -i / 16.0) / (double)folder->graph->inv_freq[i]);
    write_model(&model);
    mgl_checkpoint *file = import(path);
    for (int64_t capacity = 64; capacity <= 512; capacity *= 8) {
        const float *frequencies = mgl_graph_frequencies(file->graph, capacity);
        for (int i = 0; i < 16; i++)
            ck_assert_float_eq_tol(frequencies[i] / folder->graph->inv_freq[i], 1, 1e-6f);
    }
    ck_assert_float_eq(file->graph->rope_scale, 1);
    mgl_checkpoint_close(folder);
    mgl_checkpoint_close(file);
}
END_TEST

/* ---- replies --------------------------------------------------------------------------------- */

enum { TOKENS = 40 };

/* Generates from a prompt. */
static void generate(const char *model_path, int32_t ids[TOKENS])
{
    static const int32_t prompt[] = {909, 452, 449, 268, 259, 804, 637, 453};
    const mgl_request request = {.size = sizeof request,
                                 .prompt = prompt,
                                 .prompt_count = 8,
                                 .max_tokens = TOKENS,
                                 .ignore_eos = true};
    const mgl_open_options options = {.size = sizeof options, .device = "cpu", .capacity = 64};
    mgl_result result = {.size = sizeof result};
    mgl_model *model = NULL;
    ck_assert_msg(mgl_model_open(model_path, &options, &model, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
    ck_assert_msg(mgl_model_generate(model, &request, NULL, NULL, &result, &err) == MGL_OK,
                  "%s: %s", err.where, err.message);
    ck_assert_uint_eq(result.output.count, TOKENS);
    memcpy(ids, result.output.ids, TOKENS * sizeof *ids);
    mgl_result_clear(&result);
    mgl_model_close(model);
}

/* The weights of the folder are bf16, so these files have the same. */
START_TEST(test_replies)
{
    static const char *const exact[] = {"F32", "BF16"};
    int32_t wanted[TOKENS], got[TOKENS];
    write_model(&(gguf_model){.folder = TALES, .matrices = exact[_i]});
    generate(TALES, wanted);
    generate(path, got);
    ck_assert_int_eq(memcmp(wanted, got, sizeof got), 0);
    generate(scratch, got); /* the folder that holds the file */
    ck_assert_int_eq(memcmp(wanted, got, sizeof got), 0);
}
END_TEST

/* A compiled file gives the tokens of the GGUF file, and has its tokenizer. */
START_TEST(test_compiled)
{
    static const char *const compiled[] = {"BF16", "Q8_0", "Q4_1"};
    int32_t wanted[TOKENS], got[TOKENS];
    char mega[80];
    mgl_tokenizer *tokenizer = NULL;
    const mgl_compile_options options = {.size = sizeof options, .target = "cpu:1", .capacity = 64};
    write_model(&(gguf_model){.folder = TALES, .matrices = compiled[_i]});
    snprintf(mega, sizeof mega, "%s/m.mega", scratch);
    ck_assert_msg(mgl_model_compile(path, &options, mega, NULL, &err) == MGL_OK, "%s: %s",
                  err.where, err.message);
    generate(path, wanted);
    generate(mega, got);
    ck_assert_int_eq(memcmp(wanted, got, sizeof got), 0);
    ck_assert_msg(mgl_tokenizer_open(mega, &tokenizer, &err) == MGL_OK, "%s", err.message);
    mgl_tokenizer_close(tokenizer);
    ck_assert_int_eq(mgl_model_compile(path, &options, path, NULL, &err), MGL_BAD_INPUT);
}
END_TEST

/* The table of a tied quantized model is gathered from the tape of the head: it is not decoded to
 * f32 in memory. */
START_TEST(test_memory)
{
    const mgl_open_options options = {.size = sizeof options, .device = "cpu", .capacity = 64};
    mgl_model_facts facts = {.size = sizeof facts};
    mgl_model *model = NULL;
    write_model(&(gguf_model){.folder = TALES, .matrices = "Q8_0"});
    mgl_checkpoint *file = import(path);
    ck_assert_int_eq(mgl_model_open(path, &options, &model, &err), MGL_OK);
    ck_assert_int_eq(mgl_model_get_facts(model, &facts, &err), MGL_OK);
    ck_assert_uint_le(facts.memory_bytes, file->bytes * 115 / 100);
    mgl_model_close(model);
    mgl_checkpoint_close(file);
}
END_TEST

/* ---- tokenizers ------------------------------------------------------------------------------ */

static mgl_tokenizer *open_tokenizer(const char *name)
{
    mgl_tokenizer *tokenizer = NULL;
    ck_assert_msg(mgl_tokenizer_open(name, &tokenizer, &err) == MGL_OK, "%s: %s", err.where,
                  err.message);
    return tokenizer;
}

START_TEST(test_tokenizer)
{
    static const char *const texts[] = {"Once there was a curious toad.",
                                        "  two  spaces\n\nand 1234567", "It's <|eot_id|>done",
                                        "\xc3\xa9\xe2\x82\xac \xf0\x9f\x98\x80", ""};
    write_model(&(gguf_model){.folder = TALES, .matrices = "F16"});
    mgl_tokenizer *a = open_tokenizer(TALES), *b = open_tokenizer(path),
                  *c = open_tokenizer(scratch);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int special = 0; special < 2; special++) {
            mgl_ids x = {0}, y = {0}, z = {0};
            const size_t length = strlen(texts[i]);
            ck_assert_int_eq(mgl_tokenizer_encode(a, texts[i], length, special, &x, &err), MGL_OK);
            ck_assert_int_eq(mgl_tokenizer_encode(b, texts[i], length, special, &y, &err), MGL_OK);
            ck_assert_int_eq(mgl_tokenizer_encode(c, texts[i], length, special, &z, &err), MGL_OK);
            ck_assert_uint_eq(x.count, y.count);
            ck_assert_uint_eq(x.count, z.count);
            ck_assert(!x.count || !memcmp(x.ids, y.ids, x.count * sizeof *x.ids));
            mgl_ids_clear(&x);
            mgl_ids_clear(&y);
            mgl_ids_clear(&z);
        }
    mgl_tokenizer_close(a);
    mgl_tokenizer_close(b);
    mgl_tokenizer_close(c);
}
END_TEST

START_TEST(test_chat_template)
{
    const mgl_conversation conversation = {
        .size = sizeof conversation, .messages = "[{\"role\": \"user\", \"content\": \"Hello\"}]"};
    mgl_chat_template *chat = NULL;
    char *text = NULL;
    write_model(&(gguf_model){.folder = TALES, .matrices = "F16"});
    ck_assert_msg(mgl_chat_template_open(path, NULL, &chat, &err) == MGL_OK, "%s", err.message);
    ck_assert_msg(mgl_chat_template_render(chat, &conversation, &text, NULL, &err) == MGL_OK, "%s",
                  err.message);
    ck_assert_str_eq(text, "<|begin_of_text|><|eot_id|>Hello<|end_of_text|>");
    mgl_text_free(text);
    mgl_chat_template_close(chat);
}
END_TEST

static void encode(const char *text, const char *wanted)
{
    mgl_tokenizer *tokenizer = open_tokenizer(path);
    mgl_ids ids = {0};
    char got[200] = "";
    ck_assert_msg(mgl_tokenizer_encode(tokenizer, text, strlen(text), true, &ids, &err) == MGL_OK,
                  "%s", err.message);
    for (size_t i = 0; i < ids.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? "," : "",
                 (int)ids.ids[i]);
    ck_assert_str_eq(got, wanted);
    char *back = NULL;
    ck_assert_int_eq(mgl_tokenizer_decode(tokenizer, ids.ids, ids.count, true, &back, NULL, &err),
                     MGL_OK);
    ck_assert_str_eq(back, text);
    mgl_text_free(back);
    mgl_ids_clear(&ids);
    mgl_tokenizer_close(tokenizer);
}

/* A tokenizer of SentencePiece: the pair with the highest score is merged first, whatever its
 * length; characters that no token has become bytes. */
START_TEST(test_pieces)
{
    static const char *const texts[] = {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\u2581", "a",
                                        "b",     "c",   "ab",   "bc",     "abc",    "\u2581a"};
    static const int32_t kinds[] = {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1};
    static const float scores[] = {0, 0, 0, 0, 0, -9, -9, -9, -9, -3, -2, -4, -5};
    static const float table[13 * 32];
    gguf_writer w = {0};
    gguf_key_text(&w, "general.architecture", "llama");
    gguf_key_u32(&w, "llama.embedding_length", 32);
    gguf_key_u32(&w, "llama.feed_forward_length", 32);
    gguf_key_u32(&w, "llama.block_count", 1);
    gguf_key_u32(&w, "llama.attention.head_count", 1);
    gguf_key_u32(&w, "llama.context_length", 8);
    gguf_key_f32(&w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_key_text(&w, "tokenizer.ggml.model", "llama");
    gguf_key_texts(&w, "tokenizer.ggml.tokens", texts, 13);
    gguf_key_i32s(&w, "tokenizer.ggml.token_type", kinds, 13);
    gguf_key_f32s(&w, "tokenizer.ggml.scores", scores, 13);
    gguf_key_u32(&w, "tokenizer.ggml.bos_token_id", 1);
    gguf_key_u32(&w, "tokenizer.ggml.eos_token_id", 2);
    gguf_key_u32(&w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_tensor(&w, "token_embd.weight", 0, 13, 32, table, sizeof table);
    ck_assert(gguf_finish(&w, path));
    encode("abc", "1,5,11");  /* bc, then abc */
    encode("cab", "1,5,8,9"); /* the space stays alone */
    encode("bc abc", "1,5,10,5,11");
    encode("\xc3\xa9", "1,5,3,4"); /* bytes of a character without a token */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gguf_models");
    TCase *tests = tcase_create("models");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, test_weights, 0, TYPES);
    tcase_add_test(tests, test_mixed_types);
    tcase_add_loop_test(tests, test_families, 0, FAMILIES);
    tcase_add_test(tests, test_rope_factors);
    tcase_add_loop_test(tests, test_replies, 0, 2);
    tcase_add_loop_test(tests, test_compiled, 0, 3);
    tcase_add_test(tests, test_memory);
    tcase_add_test(tests, test_tokenizer);
    tcase_add_test(tests, test_chat_template);
    tcase_add_test(tests, test_pieces);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
