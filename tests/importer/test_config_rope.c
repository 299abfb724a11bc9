/* Tests of YaRN and longrope against torch; both forms of rope; sliding windows; other key names;
 * wrappers; and numbers that are not finite. */
#include "importer/config.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4,"                   \
    "\"intermediate_size\": 100, \"vocab_size\": 77, \"max_position_embeddings\": 256, "

/* Reads a whole config; returns the reasons against it, the first one in `message`. */
static size_t read_text(const char *text, mgl_config *config, char message[512])
{
    mgl_json json;
    mgl_reasons reasons = {0};
    mgl_error err = {0};
    ck_assert_msg(!mgl_json_parse_python(text, strlen(text), 4096, "c.json", &json, &err), "%s: %s",
                  err.where, err.message);
    ck_assert_int_eq(mgl_config_read(&json, config, &reasons, &err), MGL_OK);
    const size_t count = reasons.count;
    snprintf(message, 512, "%s: %s", count ? reasons.items[0].where : "",
             count ? reasons.items[0].message : "");
    mgl_reasons_clear(&reasons);
    mgl_json_clear(&json);
    return count;
}

static mgl_config read_config(const char *model_type, const char *more)
{
    char text[4096], message[512];
    mgl_config config;
    snprintf(text, sizeof text, "{" SIZES "\"model_type\": \"%s\", %s}", model_type, more);
    ck_assert_msg(!read_text(text, &config, message), "%s", message);
    return config;
}

static void expect_reason(const char *model_type, const char *more, const char *wanted)
{
    char text[4096], message[512];
    mgl_config config;
    snprintf(text, sizeof text, "{" SIZES "\"model_type\": \"%s\", %s}", model_type, more);
    ck_assert_msg(read_text(text, &config, message) > 0, "accepted: %s", text);
    ck_assert_msg(strstr(message, wanted) != NULL, "%s: no \"%s\"", message, wanted);
}

#define FACTORS                                                                                    \
    "\"short_factor\": [1, 1.1, 1.2, 1.5, 2, 2.5, 3, 4],"                                          \
    "\"long_factor\": [1, 2, 3, 5, 8, 13, 21, 34]"

/* Frequencies and attention factor of torch 2.15 by Transformers 5.24's modeling_rope_utils.py; the
 * f32 power of torch may differ in the last bit. */
static const struct {
    const char *text;
    bool is_long;
    double attention_factor;
    int count;
    float wanted[16];
} scaled[] = {
    {"\"head_dim\": 32, \"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 10000,"
     "\"factor\": 4, \"original_max_position_embeddings\": 64}",
     false,
     1.1386294361119891,
     16,
     {1, 0.477990121f, 0.221359432f, 0.0978053659f, 0.0399999991f, 0.0140585322f, 0.00790569466f,
      0.00444569858f, 0.00249999994f, 0.00140585331f, 0.000790569466f, 0.000444569858f,
      0.000250000012f, 0.000140585325f, 7.90569466e-05f, 4.44569851e-05f}},
    {"\"head_dim\": 32, \"rope_theta\": 500000, \"rope_scaling\": {\"type\": \"yarn\","
     "\"factor\": 8, \"original_max_position_embeddings\": 128, \"beta_fast\": 16,"
     "\"beta_slow\": 2, \"truncate\": false, \"mscale\": 1.0, \"mscale_all_dim\": 0.5}",
     false,
     1.094179988101349,
     16,
     {1, 0.333155096f, 0.0797863156f, 0.0106746377f, 0.00470075384f, 0.00207005511f,
      0.000911583134f, 0.000401430763f, 0.000176776681f, 7.78465546e-05f, 3.42810235e-05f,
      1.50962178e-05f, 6.64786967e-06f, 2.92749974e-06f, 1.28917316e-06f, 5.6770881e-07f}},
    {"\"rope_scaling\": {\"type\": \"longrope\", \"original_max_position_embeddings\": 64, " FACTORS
     "}",
     false,
     1.1547005383792517,
     8,
     {1, 0.287479758f, 0.0833333358f, 0.0210818499f, 0.00499999989f, 0.00126491114f, 0.00033333333f,
      7.90569466e-05f}},
    {"\"original_max_position_embeddings\": 64, \"rope_parameters\": {\"rope_type\": \"longrope\","
     "\"rope_theta\": 1e4, " FACTORS "}",
     true,
     1.1547005383792517,
     8,
     {1, 0.158113882f, 0.0333333351f, 0.00632455572f, 0.00124999997f, 0.000243252129f,
      4.76190471e-05f, 9.3008166e-06f}},
};

START_TEST(test_scaled_frequencies)
{
    float made[16];
    mgl_config config = read_config("llama", scaled[_i].text);
    ck_assert(fabs(config.rope.attention_factor - scaled[_i].attention_factor) < 1e-15);
    mgl_rope_frequencies(&config.rope, config.geometry.head_dim, scaled[_i].is_long, made);
    for (int i = 0; i < scaled[_i].count; i++)
        ck_assert_msg(fabsf(made[i] - scaled[_i].wanted[i]) <= 2e-7f * made[i],
                      "%d: %.9g, not %.9g", i, (double)made[i], (double)scaled[_i].wanted[i]);
}
END_TEST

/* null is false, as in the reference; a missing key is true. */
START_TEST(test_truncate_of_null)
{
#define YARN(more)                                                                                 \
    "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, "                                       \
    "\"original_max_position_embeddings\": 64" more "}"
    ck_assert(!read_config("llama", YARN(", \"truncate\": null")).rope.truncate);
    ck_assert(read_config("llama", YARN("")).rope.truncate);
#undef YARN
}
END_TEST

/* Transformers multiplies cos and sin by any attention_factor, and warns. With 0, attention does
 * not depend on q and k. */
START_TEST(test_attention_factors_that_are_rejected)
{
    static const char *const values[] = {"0", "0.0", "-1", "1e7", "NaN", "Infinity"};
    static const char *const types[] = {"\"yarn\"", "\"longrope\", " FACTORS};
    char text[600];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            snprintf(text, sizeof text,
                     "\"rope_scaling\": {\"factor\": 4, \"original_max_position_embeddings\": 64, "
                     "\"attention_factor\": %s, \"type\": %s}",
                     values[i], types[t]);
            expect_reason("llama", text, "c.json: rope_scaling.attention_factor: ");
        }
}
END_TEST

/* The graph has both tables, and the capacity of a program chooses one. */
START_TEST(test_long_table)
{
    mgl_graph *graph;
    mgl_error err = {0};
    mgl_config config = read_config("llama", scaled[3].text);
    ck_assert_int_eq(mgl_config_build_graph(&config, MGL_F32, &graph, &err), MGL_OK);
    ck_assert_ptr_eq(mgl_graph_frequencies(graph, 64), graph->inv_freq);
    ck_assert_ptr_eq(mgl_graph_frequencies(graph, 65), graph->long_inv_freq);
    ck_assert(graph->inv_freq[1] > graph->long_inv_freq[1]);
    ck_assert(graph->rope_scale == (float)scaled[3].attention_factor);
    mgl_graph_free(graph);
}
END_TEST

/* Phi-3: "su" and "yarn" mean longrope, and the original length is outside the object. */
START_TEST(test_phi3)
{
    static const char *const types[] = {"su", "yarn", "longrope"};
    for (int i = 0; i < 3; i++) {
        char more[512];
        snprintf(more, sizeof more,
                 "\"original_max_position_embeddings\": 64, \"rope_scaling\": {\"type\": \"%s\", "
                 "\"original_max_position_embeddings\": 32, " FACTORS "}",
                 types[i]);
        mgl_config config = read_config("phi3", more);
        ck_assert_int_eq(config.rope.type, MGL_ROPE_LONGROPE);
        ck_assert(config.rope.original_max_positions == 64);
    }
    ck_assert(read_config("phi3", "\"rope_scaling\": null").rope.type == MGL_ROPE_DEFAULT);
    expect_reason("phi3", "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
                  "the rope type \"linear\" is not supported; default, longrope, su and yarn are");
    expect_reason("phi3", "\"partial_rotary_factor\": 0.75", "rope on a part of each head");
    char text[4096], message[512]; /* Phi-4-mini: the only actual reason */
    mgl_config config;
    snprintf(text, sizeof text,
             "{" SIZES "\"model_type\": \"phi3\", \"partial_rotary_factor\": 0.75, "
             "\"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, 1, 1, 1, 1, 1],"
             "\"long_factor\": [2, 2, 2, 2, 2, 2]}}");
    ck_assert_uint_eq(read_text(text, &config, message), 1);
    ck_assert_ptr_nonnull(strstr(message, "rope on a part of each head"));
    expect_reason("phi3",
                  "\"rope_scaling\": {\"type\": \"su\", \"short_factor\": [1, 2], "
                  "\"long_factor\": [1, 2]}",
                  "a list of head_dim / 2 = 8 numbers");
}
END_TEST

/* Both forms may exist if they describe the same rope, with defaults for missing keys. */
START_TEST(test_both_forms)
{
    mgl_config config =
        read_config("llama", "\"rope_theta\": 500000.0, \"rope_scaling\": {\"type\": \"linear\", "
                             "\"factor\": 2}, \"rope_parameters\": {\"rope_type\": \"linear\", "
                             "\"factor\": 2.0, \"rope_theta\": 500000}");
    ck_assert_int_eq(config.rope.type, MGL_ROPE_LINEAR);
    ck_assert(config.rope.theta == 500000 && config.rope.factor == 2);
    config = read_config("llama", "\"rope_scaling\": {}, \"rope_parameters\": {\"rope_theta\": 7}");
    ck_assert(config.rope.theta == 7);
    expect_reason("llama",
                  "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, "
                  "\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4}",
                  "contradicts rope_scaling");
}
END_TEST

static const struct {
    const char *type, *text;
    int positions, window;
} windows[] = {
    {"mistral", "\"sliding_window\": 128", 128, 128},
    {"mistral", "\"sliding_window\": 256", 256, 0},
    {"mistral", "\"sliding_window\": null", 256, 0},
    {"mistral", "\"max_position_embeddings\": 32768", 4096, 4096},
    {"llama", "\"sliding_window\": 128", 128, 128},
    {"llama", "\"sliding_window\": 128, \"use_sliding_window\": false", 256, 0},
    {"phi3", "\"sliding_window\": 63", 63, 63},
    {"phi3", "\"sliding_window\": 63, \"use_sliding_window\": false", 63, 63},
    {"mistral", "\"sliding_window\": 128, \"use_sliding_window\": false", 128, 128},
    {"qwen2", "\"sliding_window\": 128, \"use_sliding_window\": false", 256, 0},
    {"qwen2", "\"sliding_window\": 128, \"use_sliding_window\": true", 256, 0},
    {"qwen2", "\"sliding_window\": 128, \"use_sliding_window\": true, \"max_window_layers\": 2",
     128, 128},
    {"qwen2", "\"sliding_window\": 128, \"use_sliding_window\": true, \"max_window_layers\": 0",
     128, 128},
    {"qwen3",
     "\"sliding_window\": 128, \"use_sliding_window\": true, \"layer_types\": "
     "[\"full_attention\", \"full_attention\", \"sliding_attention\"]",
     128, 128},
};

START_TEST(test_no_window)
{
    expect_reason("mistral", "\"sliding_window\": 0, \"num_key_value_heads\": 4",
                  "sliding_window: must be");
}
END_TEST

START_TEST(test_windows)
{
    char text[1024], message[512];
    mgl_config config;
    const bool own = strstr(windows[_i].text, "max_position") != NULL;
    snprintf(text, sizeof text,
             "{\"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4,"
             "\"intermediate_size\": 100, \"vocab_size\": 77, \"num_key_value_heads\": 4, %s"
             "\"model_type\": \"%s\", %s}",
             own ? "" : "\"max_position_embeddings\": 256, ", windows[_i].type, windows[_i].text);
    ck_assert_msg(!read_text(text, &config, message), "%s", message);
    ck_assert_int_eq(config.max_positions, windows[_i].positions);
    ck_assert_int_eq(config.window, windows[_i].window);
}
END_TEST

START_TEST(test_other_names)
{
    char message[512];
    mgl_config config;
    ck_assert_uint_eq(read_text("{\"architectures\": [\"ExaoneForCausalLM\"], \"hidden_size\": 64,"
                                "\"num_layers\": 3, \"num_attention_heads\": 4, "
                                "\"num_key_value_heads\": 2, \"intermediate_size\": 100,"
                                "\"layer_norm_epsilon\": 1e-3, \"activation_function\": \"silu\","
                                "\"vocab_size\": 77}",
                                &config, message),
                      0);
    ck_assert_int_eq(config.geometry.layers, 3);
    ck_assert(config.geometry.eps == 1e-3f);
    ck_assert(config.rope.theta == 500000);
    expect_reason("exaone", "\"num_key_value_heads\": 2, \"activation_function\": \"gelu\"",
                  "activation_function: the activation \"gelu\"");
    expect_reason("exaone", "\"num_key_value_heads\": 2, \"num_layers\": 4",
                  "num_layers: contradicts num_hidden_layers");
    config = read_config("internlm3", "\"qkv_bias\": true, \"bias\": false");
    ck_assert_uint_eq(config.extras, MGL_EXTRA_QKV_BIAS);
    config = read_config("seed_oss", "\"num_key_value_heads\": 2");
    ck_assert_uint_eq(config.extras, MGL_EXTRA_QKV_BIAS);
    config = read_config("seed_oss", "\"num_key_value_heads\": 2, \"attention_bias\": false, "
                                     "\"attention_out_bias\": true");
    ck_assert_uint_eq(config.extras, MGL_EXTRA_O_BIAS);
    config = read_config("ernie4_5", "\"use_bias\": true");
    ck_assert_uint_eq(config.extras, MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS);
    ck_assert(config.tied && config.pairs == MGL_PAIRS_NEIGHBORS);
    expect_reason("llama", "\"use_bias\": true", "use_bias: true: no such key");
}
END_TEST

#define WRAPPED(architecture, tie)                                                                 \
    "{\"architectures\": [\"" architecture "\"], \"vision_config\": {\"hidden_size\": 7}, " tie    \
    "\"text_config\": {" SIZES "\"model_type\": \"llama\"}}"

START_TEST(test_wrappers)
{
    char message[512];
    mgl_config config;
    ck_assert_msg(!read_text(WRAPPED("Mistral3ForConditionalGeneration", ""), &config, message),
                  "%s", message);
    ck_assert(config.wrapped && config.tied && config.geometry.hidden == 64);
    ck_assert(!read_text(WRAPPED("LlavaForConditionalGeneration", ""), &config, message));
    ck_assert(config.wrapped && !config.tied);
    ck_assert(
        !read_text(WRAPPED("LlavaForConditionalGeneration", "\"tie_word_embeddings\": true, "),
                   &config, message));
    ck_assert(config.tied);
    ck_assert(read_text(WRAPPED("LlavaForConditionalGeneration", "\"num_experts\": 4, "), &config,
                        message));
    ck_assert_ptr_nonnull(strstr(message, "c.json: num_experts: 4: mixtures"));
    ck_assert(
        read_text("{\"architectures\": [\"LlavaForConditionalGeneration\"]}", &config, message));
    ck_assert_ptr_nonnull(strstr(message, "text_config"));
    ck_assert(read_text("{\"architectures\": [\"LlavaForConditionalGeneration\"], "
                        "\"text_config\": {\"model_type\": \"gemma\"}}",
                        &config, message));
    ck_assert_ptr_nonnull(strstr(message, "text_config.model_type: \"gemma\" is not supported"));
    ck_assert(read_text(WRAPPED("MllamaForConditionalGeneration", ""), &config, message));
    ck_assert_ptr_nonnull(strstr(message, "MllamaForConditionalGeneration is not supported"));
}
END_TEST

/* Keys of text_config that equal the default of the class may be missing, as in LLaVA 1.5; a model
 * that is no part of a wrapper needs them. */
START_TEST(test_wrapper_defaults)
{
    char message[512];
    mgl_config config;
    ck_assert(!read_text("{\"architectures\": [\"LlavaForConditionalGeneration\"], "
                         "\"text_config\": {\"architectures\": [\"LlamaForCausalLM\"], "
                         "\"model_type\": \"llama\", \"vocab_size\": 32064}}",
                         &config, message));
    mgl_geometry *g = &config.geometry;
    ck_assert(g->hidden == 4096 && g->layers == 32 && g->heads == 32 && g->kv_heads == 32);
    ck_assert(g->head_dim == 128 && g->ffn == 11008 && g->vocab == 32064);
    ck_assert(!read_text("{\"architectures\": [\"Mistral3ForConditionalGeneration\"], "
                         "\"text_config\": {\"hidden_size\": 5120, \"head_dim\": 128}}",
                         &config, message));
    ck_assert_str_eq(config.model_type, "mistral");
    ck_assert(g->hidden == 5120 && g->kv_heads == 8 && g->head_dim == 128 && g->ffn == 14336);
    ck_assert(read_text("{\"architectures\": [\"LlamaForCausalLM\"]}", &config, message));
    ck_assert_ptr_nonnull(strstr(message, "hidden_size: the key is missing"));
}
END_TEST

/* Python writes numbers that are not finite: fine in keys that are not read. */
START_TEST(test_not_finite)
{
    mgl_config config = read_config(
        "llama", "\"time_step_limit\": [0.0, Infinity], \"a\": NaN, \"b\": {\"c\": -Infinity}, "
                 "\"d\": \"NaN and \\\"Infinity\\\"\"");
    ck_assert_int_eq(config.geometry.hidden, 64);
    expect_reason("llama", "\"rms_norm_eps\": NaN", "rms_norm_eps: must be a number, not NaN");
    expect_reason("llama", "\"rope_theta\": Infinity", "rope_theta: must be a number");
    expect_reason("llama", "\"logits_scaling\": NaN", "logits_scaling: \"NaN\": scaled logits");
    expect_reason("llama", "\"use_bias\": NaN", "use_bias: \"NaN\": no such key");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config_rope");
    TCase *cases = tcase_create("config_rope");
    tcase_add_loop_test(cases, test_scaled_frequencies, 0, sizeof scaled / sizeof *scaled);
    tcase_add_test(cases, test_truncate_of_null);
    tcase_add_test(cases, test_attention_factors_that_are_rejected);
    tcase_add_test(cases, test_long_table);
    tcase_add_test(cases, test_phi3);
    tcase_add_test(cases, test_both_forms);
    tcase_add_loop_test(cases, test_windows, 0, sizeof windows / sizeof *windows);
    tcase_add_test(cases, test_no_window);
    tcase_add_test(cases, test_other_names);
    tcase_add_test(cases, test_wrappers);
    tcase_add_test(cases, test_wrapper_defaults);
    tcase_add_test(cases, test_not_finite);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
