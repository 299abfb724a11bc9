/* Tests of config.json in both forms: the resulting configuration, Hugging Face's defaults for
 * missing keys, and the frequencies of each type of rope. tests/damaged has the rejected files. */
#include "importer/config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES                                                                                      \
    "\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 64, \"num_hidden_layers\": 3,"    \
    "\"num_attention_heads\": 4, \"intermediate_size\": 100, \"vocab_size\": 77"

/* Reads "{SIZES, more}". The test fails if there is more than one error. */
static mgl_config read_config(const char *more)
{
    char text[2048];
    mgl_json json;
    mgl_config config;
    mgl_reasons reasons = {0};
    mgl_error err = {0};
    int length = snprintf(text, sizeof text, "{" SIZES "%s%s}", *more ? ", " : "", more);
    ck_assert_int_eq(mgl_json_parse(text, (size_t)length, sizeof text, "c.json", &json, &err), 0);
    ck_assert_int_eq(mgl_config_read(&json, &config, &reasons, &err), MGL_OK);
    if (reasons.count)
        ck_abort_msg("%s: %s", reasons.items[0].where, reasons.items[0].message);
    mgl_json_clear(&json);
    return config;
}

START_TEST(test_defaults)
{
    mgl_config config = read_config("");
    ck_assert_int_eq(config.geometry.hidden, 64);
    ck_assert_int_eq(config.geometry.layers, 3);
    ck_assert_int_eq(config.geometry.heads, 4);
    ck_assert_int_eq(config.geometry.kv_heads, 4);
    ck_assert_int_eq(config.geometry.head_dim, 16);
    ck_assert_int_eq(config.geometry.ffn, 100);
    ck_assert_int_eq(config.geometry.vocab, 77);
    ck_assert_int_eq(config.max_positions, 2048);
    ck_assert(config.geometry.eps == 1e-6f);
    ck_assert(!config.tied);
    ck_assert_int_eq(config.rope.type, MGL_ROPE_DEFAULT);
    ck_assert(config.rope.theta == 10000);
}
END_TEST

START_TEST(test_nulls_are_defaults)
{
    mgl_config config = read_config(
        "\"num_key_value_heads\": null, \"head_dim\": null, \"rope_scaling\": null,"
        "\"rope_parameters\": null, \"tie_word_embeddings\": null, \"sliding_window\": null,"
        "\"quantization_config\": null, \"pretraining_tp\": null, \"hidden_act\": null");
    ck_assert_int_eq(config.geometry.kv_heads, 4);
    ck_assert_int_eq(config.geometry.head_dim, 16);
    ck_assert(!config.tied);
}
END_TEST

START_TEST(test_values)
{
    mgl_config config = read_config(
        "\"num_key_value_heads\": 1, \"head_dim\": 128, \"max_position_embeddings\": 131072,"
        "\"rms_norm_eps\": 1e-05, \"tie_word_embeddings\": true, \"hidden_act\": \"silu\"");
    ck_assert_int_eq(config.geometry.kv_heads, 1);
    ck_assert_int_eq(config.geometry.head_dim, 128);
    ck_assert_int_eq(config.max_positions, 131072);
    ck_assert(config.geometry.eps == 1e-5f);
    ck_assert(config.tied);
}
END_TEST

/* Features that are declared but switched off, or without effect, as in many checkpoints. */
START_TEST(test_neutral)
{
    read_config("\"attention_bias\": false, \"mlp_bias\": false, \"pretraining_tp\": 2,"
                "\"sliding_window\": 4096, \"use_sliding_window\": false, \"num_experts\": 0,"
                "\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\"],"
                "\"partial_rotary_factor\": 1.0, \"logits_scaling\": 1, \"alibi\": false,"
                "\"rope_interleaved\": false, \"is_llama_config\": true, \"use_cache\": true,"
                "\"attention_dropout\": 0.1, \"torch_dtype\": \"float16\", \"pad_token_id\": -1,"
                "\"initializer_range\": 0.02, \"_name_or_path\": \"x\", \"model_type\": \"llama\"");
    read_config("\"sliding_window\": 0, \"no_rope_layers\": []");
}
END_TEST

/* ---- families -------------------------------------------------------------------------------- */

#define QKV MGL_EXTRA_QKV_BIAS

/* The result for a config, or the reason against it; 40 layers of 32 heads, hidden 1024. */
static const struct family_case {
    const char *architecture, *type, *more;
    unsigned extras;
    int kv_heads, head_dim, max_positions;
    const char *reason; /* NULL: there is none */
} families[] = {
    {"Llama", "llama", "", 0, 32, 32, 2048, NULL},
    {"Llama", "llama", "\"attention_bias\": true,", QKV | MGL_EXTRA_O_BIAS, 32, 32, 2048, NULL},
    {"Llama", "llama", "\"mlp_bias\": true,", MGL_EXTRA_MLP_BIAS, 32, 32, 2048, NULL},
    {"Llama", "llama", "\"attention_bias\": 1,", 0, 0, 0, 0, "attention_bias: must be true or"},
    {"Mistral", "mistral", "\"sliding_window\": null,", 0, 8, 32, 131072, NULL},
    {"Mistral", "mistral", "\"sliding_window\": 131072,", 0, 8, 32, 131072, NULL},
    {"Mistral", "mistral", "\"sliding_window\": 131071,", 0, 8, 32, 131071, NULL},
    {"Mistral", "mistral", "", 0, 8, 32, 4096, NULL},
    {"Mistral", "mistral", "\"max_position_embeddings\": 4096,", 0, 8, 32, 4096, NULL},
    {"Mistral", "mistral",
     "\"sliding_window\": null, \"num_key_value_heads\": null, \"head_dim\": null,"
     "\"attention_bias\": true,",
     0, 32, 32, 131072, NULL},
    {"Qwen2", "qwen2", "", QKV, 32, 32, 32768, NULL},
    {"Qwen2", "qwen2", "\"head_dim\": 64, \"num_key_value_heads\": 4,", QKV, 4, 64, 32768, NULL},
    {"Qwen2", "qwen2", "\"sliding_window\": 4096, \"use_sliding_window\": false,", QKV, 32, 32,
     32768, NULL},
    {"Qwen2", "qwen2", "\"use_sliding_window\": true,", QKV, 32, 32, 4096, NULL},
    {"Qwen2", "qwen2", "\"use_sliding_window\": true, \"max_window_layers\": 40,", QKV, 32, 32,
     32768, NULL},
    {"Qwen2", "qwen2", "\"use_sliding_window\": true, \"sliding_window\": 32768,", QKV, 32, 32,
     32768, NULL},
    {"Qwen2", "qwen2", "\"use_sliding_window\": true, \"layer_types\": [\"full_attention\"],", QKV,
     32, 32, 32768, NULL},
    {"Qwen2", "qwen2", "\"layer_types\": [\"sliding_attention\"],", 0, 0, 0, 0,
     "a layer has sliding_attention, but no window is given"},
    {"Qwen2", "qwen2", "\"layer_types\": [\"linear_attention\"],", 0, 0, 0, 0,
     "\"linear_attention\" is not supported"},
    {"Qwen3", "qwen3", "", MGL_EXTRA_QK_NORM, 32, 128, 32768, NULL},
    {"Qwen3", "qwen3", "\"attention_bias\": true, \"head_dim\": 64,",
     MGL_EXTRA_QK_NORM | QKV | MGL_EXTRA_O_BIAS, 32, 64, 32768, NULL},
    {"Qwen3", "qwen2", "", 0, 0, 0, 0, "with Qwen3ForCausalLM it must be that architecture's"},
    {NULL, "qwen3", "", MGL_EXTRA_QK_NORM, 32, 128, 32768, NULL},
    {NULL, "qwen3_moe", "", 0, 0, 0, 0, "\"qwen3_moe\" is not supported"},
    {"Qwen3Moe", "qwen3_moe", "", 0, 0, 0, 0, "Qwen3MoeForCausalLM is not supported; these"},
    {"Llama, Mistral", NULL, "", 0, 0, 0, 0, "keep the one that matches the weights"},
};

START_TEST(test_families)
{
    const struct family_case *f = &families[_i];
    char text[2048], said[1024];
    mgl_json json;
    mgl_config config;
    mgl_reasons reasons = {0};
    mgl_error err = {0};
    int length = snprintf(text, sizeof text, "{");
    if (f->architecture && strchr(f->architecture, ','))
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "\"architectures\": [\"LlamaForCausalLM\", \"MistralForCausalLM\"],");
    else if (f->architecture)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "\"architectures\": [\"%sForCausalLM\"],", f->architecture);
    if (f->type)
        length += snprintf(text + length, sizeof text - (size_t)length, "\"model_type\": \"%s\",",
                           f->type);
    length +=
        snprintf(text + length, sizeof text - (size_t)length,
                 "%s\"hidden_size\": 1024, \"num_hidden_layers\": 40,"
                 "\"num_attention_heads\": 32, \"intermediate_size\": 96, \"vocab_size\": 77}",
                 f->more);
    ck_assert_int_eq(mgl_json_parse(text, (size_t)length, sizeof text, "c.json", &json, &err), 0);
    ck_assert_int_eq(mgl_config_read(&json, &config, &reasons, &err), MGL_OK);
    said[0] = 0;
    if (reasons.count)
        snprintf(said, sizeof said, "%s: %s", reasons.items[0].where, reasons.items[0].message);
    if (f->reason) {
        ck_assert_msg(strstr(said, f->reason) != NULL, "%s: %s", text, said);
    } else {
        ck_assert_msg(!reasons.count, "%s: %s", text, said);
        ck_assert_uint_eq(config.extras, f->extras);
        ck_assert_int_eq(config.geometry.kv_heads, f->kv_heads);
        ck_assert_int_eq(config.geometry.head_dim, f->head_dim);
        ck_assert_int_eq(config.max_positions, f->max_positions);
    }
    mgl_reasons_clear(&reasons);
    mgl_json_clear(&json);
}
END_TEST

static const struct {
    const char *text;
    mgl_rope rope;
} ropes[] = {
    {"\"rope_theta\": 500000",
     {.type = MGL_ROPE_DEFAULT, .theta = 500000, .factor = 1, .attention_factor = 1}},
    {"\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}",
     {.type = MGL_ROPE_DEFAULT, .theta = 500000, .factor = 1, .attention_factor = 1}},
    {"\"rope_parameters\": {\"rope_theta\": 7e4}",
     {.type = MGL_ROPE_DEFAULT, .theta = 70000, .factor = 1, .attention_factor = 1}},
    {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}",
     {.type = MGL_ROPE_LINEAR, .theta = 10000, .factor = 4, .attention_factor = 1}},
    {"\"rope_theta\": 20000, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.5}",
     {.type = MGL_ROPE_LINEAR, .theta = 20000, .factor = 2.5, .attention_factor = 1}},
    {"\"rope_scaling\": {\"rope_type\": \"linear\", \"type\": \"yarn\", \"factor\": 2}",
     {.type = MGL_ROPE_LINEAR, .theta = 10000, .factor = 2, .attention_factor = 1}},
    {"\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2.0, \"rope_theta\": 1e4}",
     {.type = MGL_ROPE_LINEAR, .theta = 10000, .factor = 2, .attention_factor = 1}},
    {"\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}",
     {.type = MGL_ROPE_DYNAMIC, .theta = 10000, .factor = 2, .attention_factor = 1}},
    {"\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2,"
     " \"original_max_position_embeddings\": 2048}",
     {.type = MGL_ROPE_DYNAMIC, .theta = 10000, .factor = 2, .attention_factor = 1}},
    {"\"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 32,"
     " \"low_freq_factor\": 1, \"high_freq_factor\": 4, \"original_max_position_embeddings\": "
     "8192}",
     {.type = MGL_ROPE_LLAMA3,
      .theta = 500000,
      .factor = 32,
      .low_freq_factor = 1,
      .high_freq_factor = 4,
      .original_max_positions = 8192,
      .attention_factor = 1}},
    {"\"rope_parameters\": {\"rope_theta\": 500000, \"rope_type\": \"llama3\", \"factor\": 8.0,"
     " \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"partial_rotary_factor\": 1.0,"
     " \"original_max_position_embeddings\": 64}",
     {.type = MGL_ROPE_LLAMA3,
      .theta = 500000,
      .factor = 8,
      .low_freq_factor = 1,
      .high_freq_factor = 4,
      .original_max_positions = 64,
      .attention_factor = 1}},
    {"\"rope_theta\": 1e4, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2},"
     " \"rope_parameters\": {\"factor\": 2, \"rope_type\": \"linear\"}",
     {.type = MGL_ROPE_LINEAR, .theta = 10000, .factor = 2, .attention_factor = 1}},
};

START_TEST(test_rope_forms)
{
    mgl_config config = read_config(ropes[_i].text);
    const mgl_rope *wanted = &ropes[_i].rope;
    ck_assert_int_eq(config.rope.type, wanted->type);
    ck_assert(config.rope.theta == wanted->theta);
    ck_assert(config.rope.factor == wanted->factor);
    if (wanted->type == MGL_ROPE_LLAMA3) {
        ck_assert(config.rope.low_freq_factor == wanted->low_freq_factor);
        ck_assert(config.rope.high_freq_factor == wanted->high_freq_factor);
        ck_assert(config.rope.original_max_positions == wanted->original_max_positions);
    }
}
END_TEST

/* Computed with Hugging Face's formulas in f32 arithmetic (numpy; the power rounded once), printed
 * with nine digits. Some wavelengths of both llama3 cases are in the blended band. */
static const struct {
    mgl_rope rope;
    int head_dim, count;
    float wanted[32];
} frequencies[] = {
    {{.type = MGL_ROPE_DEFAULT, .theta = 10000, .factor = 1, .attention_factor = 1},
     8,
     4,
     {1.0f, 0.100000001f, 0.00999999978f, 0.00100000005f}},
    {{.type = MGL_ROPE_DYNAMIC, .theta = 10000, .factor = 4, .attention_factor = 1},
     8,
     4,
     {1.0f, 0.100000001f, 0.00999999978f, 0.00100000005f}},
    {{.type = MGL_ROPE_LINEAR, .theta = 10000, .factor = 2.5, .attention_factor = 1},
     8,
     4,
     {0.400000006f, 0.0399999991f, 0.00399999972f, 0.000400000019f}},
    {{.type = MGL_ROPE_LLAMA3,
      .theta = 500000,
      .factor = 8,
      .low_freq_factor = 1,
      .high_freq_factor = 4,
      .original_max_positions = 64,
      .attention_factor = 1},
     32,
     16,
     {1.0f, 0.440366626f, 0.079403013f, 0.0106746377f, 0.00470075384f, 0.00207005511f,
      0.000911583134f, 0.000401430763f, 0.000176776681f, 7.78465546e-05f, 3.42810235e-05f,
      1.50962178e-05f, 6.64786967e-06f, 2.92749974e-06f, 1.28917316e-06f, 5.6770881e-07f}},
    {{.type = MGL_ROPE_LLAMA3,
      .theta = 500000,
      .factor = 32,
      .low_freq_factor = 1,
      .high_freq_factor = 4,
      .original_max_positions = 8192,
      .attention_factor = 1},
     64,
     32,
     {1.0f,
      0.663601279f,
      0.440366626f,
      0.292227834f,
      0.193922758f,
      0.128687382f,
      0.0853971019f,
      0.0566696189f,
      0.0376060307f,
      0.0249554086f,
      0.0165604409f,
      0.0109895291f,
      0.00729266508f,
      0.00483942125f,
      0.00321144611f,
      0.00129054801f,
      0.000429556705f,
      9.70828623e-05f,
      1.94616387e-05f,
      1.29147675e-05f,
      8.57025589e-06f,
      5.68723226e-06f,
      3.77405445e-06f,
      2.50446715e-06f,
      1.66196742e-06f,
      1.10288363e-06f,
      7.31874934e-07f,
      4.85673127e-07f,
      3.22293289e-07f,
      2.1387423e-07f,
      1.41927202e-07f,
      9.41830649e-08f}},
};

START_TEST(test_frequencies)
{
    float made[32];
    mgl_rope_frequencies(&frequencies[_i].rope, frequencies[_i].head_dim, false, made);
    for (int i = 0; i < frequencies[_i].count; i++)
        ck_assert_msg(made[i] == frequencies[_i].wanted[i], "%d: %.9g, not %.9g", i,
                      (double)made[i], (double)frequencies[_i].wanted[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *cases = tcase_create("config");
    tcase_add_test(cases, test_defaults);
    tcase_add_test(cases, test_nulls_are_defaults);
    tcase_add_test(cases, test_values);
    tcase_add_test(cases, test_neutral);
    tcase_add_loop_test(cases, test_families, 0, sizeof families / sizeof *families);
    tcase_add_loop_test(cases, test_rope_forms, 0, sizeof ropes / sizeof *ropes);
    tcase_add_loop_test(cases, test_frequencies, 0, sizeof frequencies / sizeof *frequencies);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
