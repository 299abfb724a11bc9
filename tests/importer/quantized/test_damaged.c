/* Damaged and unsupported quantized checkpoints: each is rejected with MGL_BAD_INPUT (exit code 2)
 * and its own sentence, at import or, for codes and scales that are not numbers, when q_proj is
 * read. */
#include "base/file.h"
#include "base/memory.h"
#include "importer/checkpoint.h"
#include "tests/damaged/models.h"
#include "tests/importer/quantized/models.h"
#include "tests/scratch.h"

static char scratch[] = "/tmp/megalith-quantized-XXXXXX";
static char folder[64];

static void set_up(void)
{
    scratch_make(scratch);
    snprintf(folder, sizeof folder, "%s/m", scratch);
}

static void tear_down(void)
{
    scratch_remove(scratch);
}

/* Each case begins on a new line. */
/* clang-format off */
#define GROUP(weights) \
    "{\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\", \"ignore\": " \
        "[\"lm_head\"], " \
    "\"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"], \"weights\": {" weights "}}}}"
static const recipe ct4 = {
    .config = GROUP("\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\", "
        "\"group_size\": 32, \"symmetric\": false"),
    .layout = PACKED, .bits = 4, .group = 32, .rows = 1, .scales = "BF16", .zeros = true,
        .order = true};
static const recipe ct8 = {
    .config = GROUP("\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"channel\", "
        "\"symmetric\": true"),
    .layout = BYTES, .bits = 8, .rows = 1, .scales = "F32"};
static const recipe fp8 = {
    .config = "{\"quant_method\": \"fp8\", \"weight_block_size\": [48, 48]}",
    .layout = BYTES, .bits = 8, .is_float = true, .group = 48, .rows = 48, .scales = "F32",
        .scale_name = "weight_scale_inv"};
static const recipe ct_half_unset = {
    .config = GROUP("\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\", "
        "\"group_size\": 32, \"symmetric\": false"),
    .layout = PACKED, .bits = 4, .group = 32, .rows = 1, .scales = "BF16", .order = true,
        .reorder = ""};
static const recipe ct_zero_map = {
    .config = GROUP("\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\", "
        "\"group_size\": 32, \"symmetric\": false"),
    .layout = PACKED, .bits = 4, .group = 32, .rows = 1, .scales = "BF16", .order = true,
        .zero_map = true};
static const recipe ct_block_order = {
    .config = GROUP("\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"block\", "
        "\"block_structure\": [32, 32]"),
    .layout = BYTES, .bits = 8, .is_float = true, .group = 32, .rows = 32, .scales = "F32",
        .order = true, .reorder = ""};
static const recipe awq_order = {
    .config = "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, \"version\": \"gemm\"}",
    .layout = AWQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zeros = true,
        .order = true, .reorder = ""};
static const recipe ctf = {
    .config = GROUP("\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"tensor\""),
    .layout = BYTES, .bits = 8, .is_float = true, .scales = "BF16", .rank_one = true};
static const recipe bytes_order = {
    .config = GROUP("\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"group\", "
        "\"group_size\": 32"),
    .layout = BYTES, .bits = 8, .group = 32, .rows = 1, .scales = "BF16", .order = true};
static const recipe fbgemm = {
    .config = "{\"quant_method\": \"fbgemm_fp8\"}",
    .layout = BYTES, .bits = 8, .is_float = true, .rows = 1, .scales = "F32"};
static const recipe gptq = {
    .config = "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"sym\": false, "
        "\"desc_act\": false}",
    .layout = GPTQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zeros = true,
        .zero_offset = 1, .order = true};
static const recipe gptq_sym = {
    .config = "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"sym\": true, "
        "\"desc_act\": false}",
    .layout = GPTQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zero_offset = 1,
        .order = true};
static const recipe gptq_act = {
    .config = "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"sym\": true, "
        "\"desc_act\": true}",
    .layout = GPTQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zero_offset = 1,
        .order = true};
static const recipe gptq_down = {
    .config = "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"sym\": true, "
        "\"desc_act\": true}",
    .layout = GPTQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zero_offset = 1,
        .order = true, .reorder = "down_proj"};
static const recipe awq = {
    .config = "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, \"version\": \"gemm\"}",
    .layout = AWQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zeros = true};
static const recipe awq_excluded = {
    .config = "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, "
        "\"modules_to_not_convert\": [\"layers\"]}",
    .layout = AWQ, .bits = 4, .group = 32, .rows = 1, .scales = "F16", .zeros = true};
static const recipe plain = {
    .config = GROUP("\"num_bits\": 8, \"type\": \"int\", \"strategy\": \"channel\""),
        .layout = PLAIN};

static const struct {
    const char *name;
    const recipe *recipe;
    edit edit;
    const char *message; /* a part of "where: message" */
} cases[] = {
    /* the declaration: methods and layouts that are not supported */
    {"method-bitsandbytes", &ct4, {CONFIG, "compressed-tensors", "bitsandbytes", 0, 0},
         "quant_method: quantization by bitsandbytes is not supported; supported: "
         "compressed-tensors, gptq"},
    {"method-hqq", &ct4, {CONFIG, "compressed-tensors", "hqq", 0, 0},
         "quantization by HQQ is not supported"},
    {"method-aqlm", &ct4, {CONFIG, "compressed-tensors", "aqlm", 0, 0}, "quantization by AQLM"},
    {"method-quanto", &ct4, {CONFIG, "compressed-tensors", "quanto", 0, 0},
         "quantization by Quanto"},
    {"method-mxfp4", &ct4, {CONFIG, "compressed-tensors", "mxfp4", 0, 0}, "quantization by MXFP4"},
    {"method-unknown", &ct4, {CONFIG, "compressed-tensors", "x\\u001by", 0, 0},
         "quantization by x?y is not supported"},
    {"method-missing", &ct4, {CONFIG, "\"quant_method\": \"compressed-tensors\", ", "", 0, 0},
         "quantization_config.quant_method: the key is missing"},
    {"method-number", &ct4, {CONFIG, "\"compressed-tensors\"", "4", 0, 0},
         "quant_method: must be a string"},
    {"method-of-8-bit-flag", &ct4, {CONFIG, "\"quant_method\": \"compressed-tensors\"",
         "\"load_in_8bit\": true", 0, 0}, "quantization by bitsandbytes"},
    {"config-number", &plain, {CONFIG, "\"quantization_config\": {",
         "\"quantization_config\": null, \"compression_config\": 5, \"x\": {", 0, 0},
         "the quantization must be an object"},
    {"config-string", &gptq, {CONFIG,
         "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 32, \"sym\": false, "
         "\"desc_act\": false}", "\"gptq\"", 0, 0}, "the quantization must be an object"},
    {"format-nvfp4", &ct4, {CONFIG, "pack-quantized", "nvfp4-pack-quantized", 0, 0},
         "the layout \"nvfp4-pack-quantized\" is not supported"},
    {"format-mxfp4", &ct4, {CONFIG, "pack-quantized", "mxfp4-pack-quantized", 0, 0},
         "the layout \"mxfp4-pack-quantized\""},
    {"format-marlin", &ct4, {CONFIG, "pack-quantized", "marlin-24", 0, 0},
         "the layout \"marlin-24\""},
    {"format-sparse", &ct4, {CONFIG, "pack-quantized", "sparse-24-bitmask", 0, 0},
         "the layout \"sparse-24-bitmask\""},
    {"format-of-group", &ct4, {CONFIG, "{\"targets\"",
         "{\"format\": \"nvfp4-pack-quantized\", \"targets\"", 0, 0}, "the layout \"nvfp4"},
    {"kv-cache", &ct4, {CONFIG, "\"ignore\"", "\"kv_cache_scheme\": {\"num_bits\": 8}, \"ignore\"",
         0, 0}, "kv_cache_scheme: {\"num_bits\":8}: a quantized key and value cache"},
    {"transform", &ct4, {CONFIG, "\"ignore\"",
         "\"transform_config\": {\"config_groups\": {\"u\": 1}}, \"ignore\"", 0, 0},
         "transforms of weights"},
    {"sparsity", &ct4, {CONFIG, "\"ignore\"",
         "\"sparsity_config\": {\"format\": \"sparse-bitmask\"}, \"ignore\"", 0, 0},
         "sparse weights are not supported"},
    {"bits-3", &ct4, {CONFIG, "\"num_bits\": 4", "\"num_bits\": 3", 0, 0},
         "weights of 3 bits are not supported; supported: 4 and 8"},
    {"bits-string", &ct4, {CONFIG, "\"num_bits\": 4", "\"num_bits\": \"4\"", 0, 0},
         "num_bits: must be a whole number"},
    {"float-4", &ct4, {CONFIG, "\"num_bits\": 4, \"type\": \"int\"",
         "\"num_bits\": 4, \"type\": \"float\"", 0, 0}, "floating-point weights of 4 bits"},
    {"type-unknown", &ct4, {CONFIG, "\"type\": \"int\"", "\"type\": \"posit\"", 0, 0},
         "numbers of type \"posit\""},
    {"float-asymmetric", &ctf, {CONFIG, "\"type\": \"float\"",
         "\"type\": \"float\", \"symmetric\": false", 0, 0},
         "floating-point weights with zero points"},
    {"dynamic-weights", &ct4, {CONFIG, "\"num_bits\": 4", "\"dynamic\": true, \"num_bits\": 4", 0,
         0}, "quantized while the model runs"},
    {"strategy-token", &ct4, {CONFIG, "\"strategy\": \"group\"", "\"strategy\": \"token\"", 0, 0},
         "scales by \"token\""},
    {"strategy-two-scales", &ct4, {CONFIG, "\"strategy\": \"group\"",
         "\"strategy\": \"tensor_group\"", 0, 0}, "scales by \"tensor_group\""},
    {"group-zero", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": 0", 0, 0},
         "groups of 0 columns are not supported"},
    {"group-negative", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": -2", 0, 0},
         "groups of -2 columns"},
    {"group-odd", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": 33", 0, 0},
         "groups of 33 columns"},
    {"group-not-16", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": 8", 0, 0},
         "groups of 8 columns"},
    {"group-huge", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": 1073741824", 0, 0},
         "groups of 1073741824 columns"},
    {"group-fraction", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": 32.5", 0, 0},
         "group_size: must be a whole number"},
    {"group-over-row", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": 128", 0, 0},
         "groups of 128 columns are larger than a row of 64 columns"},
    {"group-other", &ct4, {CONFIG, "\"group_size\": 32", "\"group_size\": 16", 0, 0},
         "weight_scale: its shape is [64, 2]; a matrix of 64 rows and 64 columns in the declared "
         "quantization makes it [64, 4]"},
    {"groups-missing", &ct4, {CONFIG, "config_groups", "groups", 0, 0},
         "config_groups: the key is missing"},
    {"groups-array", &ct4, {CONFIG, "\"config_groups\": {", "\"config_groups\": [], \"x\": {", 0,
         0}, "config_groups: must be an object"},
    {"group-number", &ct4, {CONFIG, "\"config_groups\": {", "\"config_groups\": {\"a\": 3, ", 0,
         0}, "\"a\" is neither an object nor a preset's name"},
    {"preset-nvfp4", &ct4, {CONFIG, "\"config_groups\": {",
         "\"config_groups\": {\"a\": \"NVFP4\", ", 0, 0}, "the preset \"NVFP4\" is not supported"},
    {"preset-w3a16", &ct4, {CONFIG, "\"config_groups\": {",
         "\"config_groups\": {\"W3A16\": [\"Linear\"], ", 0, 0}, "the preset \"W3A16\""},
    {"targets-number", &ct4, {CONFIG, "[\"Linear\"]", "[\"Linear\", 7]", 0, 0},
         "an entry is not a string"},
    {"targets-pattern", &ct4, {CONFIG, "[\"Linear\"]", "[\"re:(\"]", 0, 0},
         "the pattern \"re:(\" is not a valid regular expression"},
    {"ignore-object", &ct4, {CONFIG, "[\"lm_head\"]", "{}", 0, 0}, "ignore: must be an array"},
    {"gptq-bits-2", &gptq, {CONFIG, "\"bits\": 4", "\"bits\": 2", 0, 0}, "weights of 2 bits"},
    {"gptq-bits-missing",
     &gptq,
     {CONFIG, "\"bits\": 4, ", "", 0, 0},
     "bits: the number of bits is missing or 0"},
    {"gptq-group", &gptq, {CONFIG, "\"group_size\": 32", "\"group_size\": 20", 0, 0},
         "groups of 20 columns"},
    {"gptq-marlin", &gptq, {CONFIG, "\"sym\"", "\"checkpoint_format\": \"marlin\", \"sym\"", 0, 0},
         "the layout \"marlin\" is not supported; supported: gptq and gptq_v2"},
    {"gptq-marlin-flag", &gptq, {CONFIG, "\"sym\"", "\"is_marlin_format\": true, \"sym\"", 0, 0},
         "the marlin layout"},
    {"gptq-dynamic", &gptq, {CONFIG, "\"sym\"", "\"dynamic\": {\"-:mlp\": {}}, \"sym\"", 0, 0},
         "rules for single modules"},
    {"gptq-words", &gptq, {CONFIG, "\"sym\"", "\"pack_dtype\": \"int16\", \"sym\"", 0, 0},
         "words of type \"int16\""},
    {"awq-gemv", &awq, {CONFIG, "gemm", "gemv", 0, 0},
         "the AWQ layout \"gemv\" is not supported; supported: gemm; use a checkpoint with version "
         "\"gemm\", or quantize the original checkpoint"},
    {"awq-gemv-fast", &awq, {CONFIG, "gemm", "gemv_fast", 0, 0}, "the AWQ layout \"gemv_fast\""},
    {"awq-llm", &awq, {CONFIG, "\"version\"", "\"backend\": \"llm-awq\", \"version\"", 0, 0},
         "the layout of llm-awq is not supported; supported: gemm of AutoAWQ; use a checkpoint in"},
    {"awq-8-bits", &awq, {CONFIG, "\"bits\": 4", "\"bits\": 8", 0, 0}, "AWQ weights of 8 bits"},
    {"fp8-block-odd", &fp8, {CONFIG, "[48, 48]", "[48, 20]", 0, 0},
         "blocks of this size are not supported"},
    {"fp8-block-one", &fp8, {CONFIG, "[48, 48]", "[128]", 0, 0}, "blocks of this size"},
    {"fp8-block-zero", &fp8, {CONFIG, "[48, 48]", "[0, 0]", 0, 0}, "blocks of this size"},
    {"fp8-format", &fp8, {CONFIG, "\"weight_block_size\"",
         "\"fmt\": \"e5m2\", \"weight_block_size\"", 0, 0}, "numbers of the format \"e5m2\""},

    /* tensors that are missing, or that the declaration does not have */
    {"no-declaration", &ct4, {CONFIG, "\"quantization_config\"", "\"unused_config\"", 0, 0},
         "weight_packed: the matrix is quantized (I32), but config.json has no usable "
         "quantization_config"},
    {"no-declaration-fp8", &fp8, {CONFIG, "\"quantization_config\"", "\"unused_config\"", 0, 0},
         "the matrix is quantized (F8_E4M3)"},
    {"ct-no-codes", &ct4, {DROP, "weight_packed", NULL, 0, 0},
         "q_proj.weight: the tensor is missing"},
    {"ct-no-scale", &ct4, {DROP, "weight_scale", NULL, 0, 0},
         "weight_scale: the tensor is missing; the layout of compressed-tensors needs"},
    {"ct-no-shape", &ct4, {DROP, "weight_shape", NULL, 0, 0},
         "weight_shape: the tensor is missing"},
    {"ct8-no-scale", &ct8, {DROP, "weight_scale", NULL, 0, 0},
         "weight_scale: the tensor is missing"},
    {"fp8-no-scale", &fp8, {DROP, "weight_scale_inv", NULL, 0, 0},
         "weight_scale_inv: the tensor is missing"},
    {"fp8-two-scales", &fp8, {ADD, "weight_scale", "F32", 2, 2},
         "both weight_scale and weight_scale_inv are stored"},
    {"gptq-no-scales", &gptq, {DROP, "scales", NULL, 0, 0},
         "scales: the tensor is missing; the layout of gptq"},
    {"gptq-no-zeros", &gptq, {DROP, "qzeros", NULL, 0, 0}, "qzeros: the tensor is missing"},
    {"gptq-no-order", &gptq_act, {DROP, "g_idx", NULL, 0, 0},
         "g_idx: the tensor is missing; the layout of gptq"},
    {"awq-no-zeros", &awq, {DROP, "qzeros", NULL, 0, 0}, "qzeros: the tensor is missing"},
    {"awq-no-codes", &awq, {DROP, "qweight", NULL, 0, 0}, "q_proj.weight: the tensor is missing"},
    {"excluded-no-scales", &awq_excluded, {DROP, "scales", NULL, 0, 0},
         "scales: the tensor is missing; the layout of awq"},
    {"excluded-shape", &awq_excluded, {SHAPE, "qzeros", NULL, 8, 2}, "qzeros: its shape is [8, 2]"},
    {"excluded-no-group", &ct4, {CONFIG, "\"weights\"", "\"activations\"", 0, 0},
         "the matrix is quantized, but the config declares no quantized weights"},
    {"ct-scale-too-large", &ct8, {SET, "weight_scale", NULL, 0, 0x7F000000},
         "the scale of row 0, group 0 (from column 0) is too large"},
    {"two-forms", &ct4, {ADD, "weight", "BF16", 64, 64}, "the matrix is stored in two forms"},
    {"plain-and-scale", &plain, {ADD, "weight_scale", "BF16", 64, 1},
         "the config declares quantized weights and scales are stored, but the weights are BF16"},
    {"gptq-of-awq", &gptq, {CONFIG, "\"gptq\"", "\"awq\"", 0, 0}, "qweight: its shape is [8, 64]"},
    {"awq-of-gptq", &awq, {CONFIG, "\"awq\"", "\"gptq\"", 0, 0}, "qweight: its shape is [64, 8]"},
    {"gptq-of-ct", &gptq, {CONFIG, "{\"quant_method\": \"gptq\"",
         "{\"config_groups\": {\"a\": \"W4A16\"}, \"quant_method\": \"compressed-tensors\"", 0, 0},
         "qweight: the layout of compressed-tensors has no such tensor"},
    {"ct-of-fp8", &ct4, {CONFIG, "compressed-tensors", "fp8", 0, 0},
         "weight_packed: the layout of fp8 has no such tensor"},
    {"bias", &gptq, {RENAME, "g_idx", "bias", 0, 0},
         "q_proj.bias: a bias that config.json does not give"},
    {"kv-scale", &fp8, {ADD, "k_scale", "F32", 1, -1},
         "q_proj.k_scale: a scale or zero point of a KV cache of 8 bits, which changes the "
         "results and is not supported; export the model without a KV cache scheme"},
    {"kv-scale-v", &fp8, {ADD, "v_scale", "BF16", 1, -1},
         "q_proj.v_scale: a scale or zero point of a KV cache of 8 bits"},
    {"kv-scale-both", &ct8, {ADD, "kv_scale", "F32", 1, -1},
         "q_proj.kv_scale: a scale or zero point of a KV cache of 8 bits"},
    {"kv-zero-point", &ct8, {ADD, "k_zero_point", "I8", 1, -1},
         "q_proj.k_zero_point: a scale or zero point of a KV cache of 8 bits"},
    {"kv-output-scale", &ct8, {ADD, "output_scale", "F32", 1, -1},
         "q_proj.output_scale: a scale or zero point of a KV cache of 8 bits"},
    {"scales-of-targeted-head", &gptq, {ADD, "lm_head.scales", "F16", 2, 64},
         "lm_head.scales: a part of a quantized matrix that the model does not use"},
    {"unknown-tensor", &ct4, {ADD, "weight_global_scale", "F32", 1, -1},
         "weight_global_scale: a model with this configuration has no such tensor"},

    /* dtypes */
    {"ct-codes-dtype", &ct4, {DTYPE, "weight_packed", "U32", 0, 0},
         "weight_packed: its dtype is U32; the layout of compressed-tensors makes it I32"},
    {"ct-scale-dtype", &ct4, {DTYPE, "weight_scale", "I16", 0, 0},
         "scales of dtype I16 are not supported"},
    {"ct-scale-e8m0", &ct4, {DTYPE, "weight_scale", "F8_E8M0", 0, 0}, "scales of dtype F8_E8M0"},
    {"ct-zero-dtype", &ct4, {DTYPE, "weight_zero_point", "F32", 0, 0},
         "weight_zero_point: its shape differs from the shape of"},
    {"ct-shape-dtype", &ct4, {DTYPE, "weight_shape", "F32", 0, 0},
         "weight_shape: its dtype is F32"},
    {"ct8-float", &ct8, {DTYPE, "weight", "F8_E4M3", 0, 0},
         "its dtype is F8_E4M3, but the config declares integer weights"},
    {"ctf-integer", &ctf, {DTYPE, "weight", "I8", 0, 0},
         "its dtype is I8, but the config declares floating-point weights"},
    {"fp8-e5m2", &fp8, {DTYPE, "weight", "F8_E5M2", 0, 0},
         "q_proj.weight: its dtype F8_E5M2 is not supported; of 8 bits, F8_E4M3 and I8 with "
         "scales are; quantize the original checkpoint"},
    {"ctf-e5m2", &ctf, {DTYPE, "weight", "F8_E5M2", 0, 0},
         "q_proj.weight: its dtype F8_E5M2 is not supported"},
    {"int8-e5m2", &ct8, {DTYPE, "weight", "F8_E5M2", 0, 0},
         "q_proj.weight: its dtype F8_E5M2 is not supported"},
    {"fp8-scale-dtype", &fp8, {DTYPE, "weight_scale_inv", "F64", 0, 0}, "scales of dtype F64"},
    {"gptq-codes-dtype", &gptq, {DTYPE, "qweight", "F32", 0, 0}, "qweight: its dtype is F32"},
    {"gptq-zeros-dtype", &gptq, {DTYPE, "qzeros", "F32", 0, 0}, "qzeros: its dtype is F32"},
    {"gptq-order-dtype", &gptq, {DTYPE, "g_idx", "F32", 0, 0}, "g_idx: its dtype is F32"},

    /* shapes */
    {"ct-codes-cut", &ct4, {SHAPE, "weight_packed", NULL, 64, 7},
         "weight_packed: its shape is [64, 7]; a matrix of 64 rows and 64 columns in the "
         "declared quantization makes it [64, 8]"},
    {"ct-codes-rows", &ct4, {SHAPE, "weight_packed", NULL, 63, 8}, "its shape is [63, 8]"},
    {"ct-codes-rank", &ct4, {SHAPE, "weight_packed", NULL, 512, -1}, "its shape is [512]"},
    {"ct-codes-of-8-bits", &ct4, {CONFIG, "\"num_bits\": 4", "\"num_bits\": 8", 0, 0},
         "weight_packed: its shape is [64, 8]; a matrix of 64 rows and 64 columns in the "
         "declared quantization makes it [64, 16]"},
    {"ct-scale-rows", &ct4, {SHAPE, "weight_scale", NULL, 32, 2},
         "weight_scale: its shape is [32, 2]"},
    {"ct-scale-turned", &ct4, {SHAPE, "weight_scale", NULL, 2, 64},
         "weight_scale: its shape is [2, 64]"},
    {"ct-zeros-turned", &ct4, {SHAPE, "weight_zero_point", NULL, 2, 8},
         "weight_zero_point: its shape is [2, 8]"},
    {"ct-zeros-unpacked", &ct4, {SHAPE, "weight_zero_point", NULL, 64, 2},
         "weight_zero_point: its shape is [64, 2]"},
    {"ct-shape-other", &ct4, {SET, "weight_shape", NULL, 0, 32},
         "weight_shape: the matrix is [32, 64] there; config.json makes it [64, 64]"},
    {"ct-shape-long", &ct4, {SHAPE, "weight_shape", NULL, 3, -1}, "weight_shape: its shape is [3]"},
    {"ct-shape-negative", &ct4, {SET, "weight_shape", NULL, 4, -1},
         "the matrix is [-4294967232, 64]"},
    {"ct8-rows", &ct8, {SHAPE, "weight", NULL, 60, 64}, "weight: its shape is [60, 64]"},
    {"ct8-scale", &ct8, {SHAPE, "weight_scale", NULL, 1, -1}, "weight_scale: its shape is [1]"},
    {"ctf-scale", &ctf, {SHAPE, "weight_scale", NULL, 2, -1}, "weight_scale: its shape is [2]"},
    {"fp8-scale", &fp8, {SHAPE, "weight_scale_inv", NULL, 1, 2},
         "weight_scale_inv: its shape is [1, 2]"},
    {"fp8-blocks", &fp8, {CONFIG, "[48, 48]", "[64, 32]", 0, 0},
         "weight_scale_inv: its shape is [2, 2]; a matrix of 64 rows and 64 columns in the "
         "declared quantization makes it [1, 2]"},
    {"fp8-block-null", &fp8, {CONFIG, "[48, 48]", "null", 0, 0},
         "weight_scale_inv: its shape is [2, 2]"},
    {"fbgemm-scale", &fbgemm, {SHAPE, "weight_scale", NULL, 1, 64},
         "weight_scale: its shape is [1, 64]"},
    {"gptq-codes-turned", &gptq, {SHAPE, "qweight", NULL, 64, 8}, "qweight: its shape is [64, 8]"},
    {"gptq-bits-8", &gptq, {CONFIG, "\"bits\": 4", "\"bits\": 8", 0, 0},
         "qweight: its shape is [8, 64]"},
    {"gptq-group-64", &gptq, {CONFIG, "\"group_size\": 32", "\"group_size\": 64", 0, 0},
         "scales: its shape is [2, 64]"},
    {"gptq-scales", &gptq, {SHAPE, "scales", NULL, 64, 2}, "scales: its shape is [64, 2]"},
    {"gptq-zeros", &gptq, {SHAPE, "qzeros", NULL, 2, 7}, "qzeros: its shape is [2, 7]"},
    {"gptq-order-short", &gptq, {SHAPE, "g_idx", NULL, 63, -1}, "g_idx: its shape is [63]"},
    {"awq-codes", &awq, {SHAPE, "qweight", NULL, 64, 7}, "qweight: its shape is [64, 7]"},
    {"awq-zeros", &awq, {SHAPE, "qzeros", NULL, 8, 2}, "qzeros: its shape is [8, 2]"},
    {"config-width", &gptq, {CONFIG, "\"intermediate_size\": 128", "\"intermediate_size\": 120", 0,
         0}, "(3 matrices are rejected)"},
    {"config-odd-width", &gptq, {CONFIG, "\"intermediate_size\": 128",
         "\"intermediate_size\": 125", 0, 0},
         "a packed matrix with 125 rows is not supported; supported: multiples of 8"},
    {"ct-odd-width", &ct4, {CONFIG, "\"intermediate_size\": 128", "\"intermediate_size\": 124", 0,
         0}, "its shape is"},

    /* values */
    {"gptq-order-real", &gptq, {SET, "g_idx", NULL, 0, 1},
         "g_idx: group 0 has 31 columns instead of 32; groups of different sizes are not "
         "supported"},
    {"gptq-order-last", &gptq, {SET, "g_idx", NULL, 252, 0},
         "group 0 has 33 columns instead of 32"},
    {"gptq-order-beyond", &gptq, {SET, "g_idx", NULL, 0, 2},
         "column 0 has group 2; the groups are 0 to 1"},
    {"gptq-order-negative", &gptq, {SET, "g_idx", NULL, 4, -2}, "column 1 has group -2"},
    {"bytes-order-real", &bytes_order, {SET, "weight_g_idx", NULL, 0, 1},
         "weight_g_idx: group 0 has 31 columns"},
    {"gptq-two-layouts", &gptq, {CONFIG, "\"sym\": false",
         "\"sym\": false, \"checkpoint_format\": \"gptq\", \"format\": \"gptq_v2\"", 0, 0},
         "format: contradicts checkpoint_format"},
    {"awq-symmetric", &awq, {CONFIG, "\"version\"", "\"zero_point\": false, \"version\"", 0, 0},
         "qzeros: the config declares symmetric weights"},
    {"ct-order-real", &ct4, {SET, "weight_g_idx", NULL, 128, 0},
         "weight_g_idx: group 0 has 33 columns"},
    {"ct-order-half-unset", &ct_half_unset, {SET, "weight_g_idx", NULL, 128, -1},
         "weight_g_idx: column 32 has no group (-1), but column "},
    {"ct-order-zeros", &ct_zero_map, {NO_EDIT, NULL, NULL, 0, 0},
         "weight_g_idx: group 0 has 64 columns instead of 32"},
    {"ct-order-block", &ct_block_order, {NO_EDIT, NULL, NULL, 0, 0},
         "weight_g_idx: the columns are reordered, which the declared layout does not allow"},
    {"awq-order", &awq_order, {NO_EDIT, NULL, NULL, 0, 0},
         "g_idx: the columns are reordered, which the declared layout does not allow"},
    {"gptq-sym-zero", &gptq_sym, {SET, "qzeros", NULL, 0, 0x77777770},
         "qzeros: the config declares symmetric weights, but zero points differ"},
    {"gptq-sym-mixed", &gptq_sym, {SET, "qzeros", NULL, 4, 0x78777777},
         "the config declares symmetric weights"},
    {"ct-sym-zeros", &ct4, {CONFIG, "\"symmetric\": false", "\"symmetric\": true", 0, 0},
         "weight_zero_point: the config declares symmetric weights"},
    {"ct8-sym-zeros", &ct8, {ADD, "weight_zero_point", "I8", 64, 2},
         "weight_zero_point: its shape differs"},
    {"file-cut", &gptq, {CUT_END, NULL, NULL, 4, 0}, "it is cut off"},
    {"file-cut-ct", &ct4, {CUT_END, NULL, NULL, 1000, 0}, "it is cut off"},

    /* codes and scales that are not numbers */
    {"e4m3-nan", &fp8, {SET, "weight", "1", 130, 0x7F},
         "q_proj.weight: the weight of row 2, column 2 is NaN"},
    {"e4m3-negative-nan", &ctf, {SET, "weight", "1", 4095, 0xFF},
         "the weight of row 63, column 63 is NaN"},
    {"fbgemm-nan", &fbgemm, {SET, "weight", "1", 0, 0xFF}, "the weight of row 0, column 0 is NaN"},
    {"fp8-scale-nan", &fp8, {SET, "weight_scale_inv", NULL, 12, 0x7FC00000},
         "weight_scale_inv: the scale of row 48, group 1 (from column 48) is NaN"},
    {"fp8-scale-infinite", &fp8, {SET, "weight_scale_inv", NULL, 0, 0x7F800000},
         "row 0, group 0 (from column 0) is infinite"},
    {"ct-scale-nan", &ct4, {SET, "weight_scale", "2", 6, 0x7FC0},
         "weight_scale: the scale of row 1, group 1 (from column 32) is NaN"},
    {"ct8-scale-infinite", &ct8, {SET, "weight_scale", NULL, 252, -8388608},
         "the scale of row 63, group 0 (from column 0) is infinite"},
    {"ctf-scale-nan", &ctf, {SET, "weight_scale", "2", 0, 0xFFFF}, "the scale of row 0, group 0"},
    {"gptq-scale-nan", &gptq, {SET, "scales", "2", 130, 0x7E00},
         "scales: the scale of row 1, group 1 (from column 32) is NaN"},
    {"gptq-scale-infinite", &gptq, {SET, "scales", "2", 4, 0xFC00},
         "the scale of row 2, group 0 (from column 0) is infinite"},
    {"awq-scale-nan", &awq, {SET, "scales", "2", 0, 0x7C01},
         "the scale of row 0, group 0 (from column 0) is NaN"},
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof *cases };

/* Imports the model, and reads q_proj. */
static mgl_status import_and_read(mgl_error *err)
{
    static float numbers[64 * 64];
    mgl_checkpoint *checkpoint;
    mgl_status status = mgl_import(folder, &checkpoint, err);
    if (status)
        return status;
    const mgl_graph *graph = checkpoint->graph;
    const int index = mgl_graph_find_tensor(graph, "model.layers.0.self_attn.q_proj.weight");
    status = graph->read(graph, index, 0, graph->tensors[index].rows, numbers, err);
    mgl_checkpoint_close(checkpoint);
    return status;
}

START_TEST(test_damaged)
{
    mgl_error err = {0};
    char said[sizeof err.where + sizeof err.message + 2];
    ck_assert_msg(write_quantized(cases[_i].recipe, &cases[_i].edit, folder), "%s cannot be made",
                  cases[_i].name);
    const mgl_status status = import_and_read(&err);
    snprintf(said, sizeof said, "%s: %s", err.where, err.message);
    ck_assert_msg(status == MGL_BAD_INPUT, "%s: status %d: %s", cases[_i].name, (int)status, said);
    ck_assert_msg(strstr(said, cases[_i].message) != NULL, "%s: \"%s\" lacks \"%s\"",
                  cases[_i].name, said, cases[_i].message);
    ck_assert_msg(only_visible(said) && !strchr(said, '\n'), "%s: %s", cases[_i].name, said);
}
END_TEST

/* Every failure of an allocation or of a file operation ends in its own status. */
START_TEST(test_failures)
{
    static const recipe *const good[] = {&ct4, &ct8, &fp8, &gptq, &awq, &gptq_down};
    mgl_error err = {0};
    mgl_status status = MGL_NO_MEMORY;
    ck_assert(write_quantized(good[_i], NULL, folder));
    for (uint64_t n = 1; status == MGL_NO_MEMORY; n++) {
        mgl_alloc_fail_at(n, false);
        status = import_and_read(&err);
    }
    mgl_alloc_fail_at(0, false);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
    status = MGL_SYSTEM;
    for (uint64_t n = 1; status == MGL_SYSTEM; n++) {
        mgl_file_fail_at(n);
        status = import_and_read(&err);
    }
    mgl_file_fail_at(0);
    ck_assert_msg(status == MGL_OK, "%s: %s", err.where, err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantized_damaged");
    TCase *tests = tcase_create("damaged");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, test_damaged, 0, CASES);
    tcase_add_loop_test(tests, test_failures, 0, 6);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
