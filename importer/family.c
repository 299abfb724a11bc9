/* The tables of families, wrappers and key aliases, and their lookup. See family.h. */
#include "importer/family.h"

#include <string.h>

#define ALL_BIASES (MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS)

static const mgl_model_family families[] = {
    {.architecture = "LlamaForCausalLM",
     .model_type = "llama",
     .sizes = {4096, 32, 32, 11008, 32000},
     .biases = {{"attention_bias", MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS, false},
                {"mlp_bias", MGL_EXTRA_MLP_BIAS, false}},
     .max_positions = 2048,
     .eps = 1e-6,
     .theta = 10000},
    {.architecture = "MistralForCausalLM",
     .model_type = "mistral",
     .sizes = {4096, 32, 32, 14336, 32000},
     .kv_heads = 8,
     .max_positions = 131072,
     .eps = 1e-6,
     .theta = 10000,
     .window = MGL_WINDOW_ALWAYS,
     .window_size = 4096},
    {.architecture = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .sizes = {4096, 32, 32, 22016, 151936},
     .extras = MGL_EXTRA_QKV_BIAS,
     .kv_heads = 32,
     .max_positions = 32768,
     .eps = 1e-6,
     .theta = 10000,
     .window = MGL_WINDOW_SWITCHED,
     .window_size = 4096},
    {.architecture = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .sizes = {4096, 32, 32, 22016, 151936},
     .extras = MGL_EXTRA_QK_NORM,
     .biases = {{"attention_bias", MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS, false}},
     .head_dim = 128,
     .kv_heads = 32,
     .max_positions = 32768,
     .eps = 1e-6,
     .theta = 10000,
     .window = MGL_WINDOW_SWITCHED,
     .window_size = 4096},
    {.architecture = "Phi3ForCausalLM",
     .model_type = "phi3",
     .sizes = {3072, 32, 32, 8192, 32064},
     .max_positions = 4096,
     .eps = 1e-5,
     .theta = 10000,
     .window = MGL_WINDOW_ALWAYS,
     .longrope = true},
    {.architecture = "ExaoneForCausalLM",
     .model_type = "exaone",
     .sizes = {4096, 32, 32, 14336, 102400},
     .biases = {{"attention_bias", MGL_EXTRA_QKV_BIAS | MGL_EXTRA_O_BIAS, false},
                {"mlp_bias", MGL_EXTRA_MLP_BIAS, false}},
     .kv_heads = 8,
     .max_positions = 4096,
     .eps = 1e-5,
     .theta = 500000},
    {.architecture = "InternLM3ForCausalLM",
     .model_type = "internlm3",
     .sizes = {4096, 48, 32, 10240, 128512},
     .biases = {{"attention_bias", MGL_EXTRA_QKV_BIAS, false},
                {"mlp_bias", MGL_EXTRA_O_BIAS | MGL_EXTRA_MLP_BIAS, false}},
     .head_dim = 128,
     .kv_heads = 2,
     .max_positions = 32768,
     .eps = 1e-5,
     .theta = 10000},
    {.architecture = "SeedOssForCausalLM",
     .model_type = "seed_oss",
     .sizes = {4096, 64, 80, 27648, 155136},
     .biases = {{"attention_bias", MGL_EXTRA_QKV_BIAS, true},
                {"attention_out_bias", MGL_EXTRA_O_BIAS, false},
                {"mlp_bias", MGL_EXTRA_MLP_BIAS, false}},
     .head_dim = 128,
     .kv_heads = 8,
     .max_positions = 524288,
     .eps = 1e-6,
     .theta = 10000},
    {.architecture = "Ernie4_5ForCausalLM",
     .model_type = "ernie4_5",
     .sizes = {1024, 18, 16, 3072, 103424},
     .biases = {{"use_bias", ALL_BIASES, false}},
     .head_dim = 128,
     .kv_heads = 2,
     .max_positions = 131072,
     .eps = 1e-5,
     .theta = 500000,
     .tied = true,
     .pairs = MGL_PAIRS_NEIGHBORS},
    {.architecture = "HeliumForCausalLM",
     .model_type = "helium",
     .sizes = {2560, 24, 20, 7040, 48000},
     .biases = {{"attention_bias", MGL_EXTRA_QKV_BIAS, false},
                {"mlp_bias", MGL_EXTRA_MLP_BIAS, false}},
     .head_dim = 128,
     .kv_heads = 20,
     .max_positions = 4096,
     .eps = 1e-8,
     .theta = 100000,
     .pairs = MGL_PAIRS_NEIGHBORS},
};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

/* Earlier names of architectures, from code that was published before Transformers had the
 * class. */
static const struct {
    const char *architecture, *of;
} renamed[] = {{"Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM"}};

/* Wrappers. Inside each, the language model computes the same as without the wrapper. */
static const mgl_wrapper wrappers[] = {
    {"Mistral3ForConditionalGeneration", "mistral3", true, "mistral"},
    {"LlavaForConditionalGeneration", "llava", false, "llama"},
    {"LlavaNextForConditionalGeneration", "llava_next", false, "llama"},
    {"LlavaOnevisionForConditionalGeneration", "llava_onevision", false, "qwen2"},
    {"VipLlavaForConditionalGeneration", "vipllava", false, "llama"},
    {"InternVLForConditionalGeneration", "internvl", true, "qwen2"},
    {"Idefics3ForConditionalGeneration", "idefics3", false, "llama"},
    {"SmolVLMForConditionalGeneration", "smolvlm", false, "llama"},
};

/*  model_type, key, its alias in that family's configs */
static const struct {
    const char *model_type, *key, *alias;
} aliases[] = {
    {"exaone", "num_hidden_layers", "num_layers"},
    {"exaone", "rms_norm_eps", "layer_norm_epsilon"},
    {"exaone", "hidden_act", "activation_function"},
    {"internlm3", "attention_bias", "qkv_bias"},
    {"internlm3", "mlp_bias", "bias"},
};

/* Returns whether the name is the class without the head: LlamaModel for LlamaForCausalLM. */
static bool is_body_of(const char *name, const char *architecture)
{
    const size_t length = strlen(architecture) - strlen("ForCausalLM");
    return !strncmp(name, architecture, length) && !strcmp(name + length, "Model");
}

static const mgl_model_family *find_architecture(const char *architecture)
{
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (!strcmp(families[i].architecture, architecture) ||
            is_body_of(architecture, families[i].architecture))
            return &families[i];
    return NULL;
}

const mgl_model_family *mgl_model_family_find(const char *architecture, const char *model_type)
{
    for (size_t i = 0; architecture && i < sizeof renamed / sizeof *renamed; i++)
        if (!strcmp(renamed[i].architecture, architecture))
            return find_architecture(renamed[i].of);
    if (architecture)
        return find_architecture(architecture);
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (!strcmp(families[i].model_type, model_type))
            return &families[i];
    return NULL;
}

const mgl_model_family *mgl_model_family_default(void)
{
    return &families[0];
}

const char *mgl_model_family_list(mgl_text *text)
{
    for (int i = 0; i < FAMILY_COUNT; i++)
        mgl_text_format(text, "%s%s", i ? ", " : "", families[i].architecture);
    return text->failed ? families[0].architecture : text->bytes;
}

const char *mgl_model_family_alias(const mgl_model_family *family, const char *key)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcmp(aliases[i].model_type, family->model_type) && !strcmp(aliases[i].key, key))
            return aliases[i].alias;
    return NULL;
}

const mgl_wrapper *mgl_wrapper_find(const char *architecture, const char *model_type)
{
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        const char *own = architecture ? wrappers[i].architecture : wrappers[i].model_type;
        const char *wanted = architecture ? architecture : model_type;
        if (!strcmp(own, wanted))
            return &wrappers[i];
    }
    return NULL;
}
