/* Implements models.h: the table of damaged models, and writing their folders. */
#include "tests/damaged/models.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG     "config.json"
#define GENERATION "generation_config.json"
#define SINGLE     "model.safetensors"
#define INDEX      "model.safetensors.index.json"
#define SHARD1     "model-00001-of-00002.safetensors"
#define SHARD2     "model-00002-of-00002.safetensors"

/* Hidden 4, one layer, 2:1 heads of 2, ffn 6, vocabulary 5; bf16; 344 bytes of weights. */
static const char config_text[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",\n"
    " \"hidden_size\": 4, \"num_hidden_layers\": 1, \"num_attention_heads\": 2,\n"
    " \"num_key_value_heads\": 1, \"head_dim\": 2, \"intermediate_size\": 6, \"vocab_size\": 5,\n"
    " \"max_position_embeddings\": 16, \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\",\n"
    " \"tie_word_embeddings\": false, \"eos_token_id\": 2,\n"
    " \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000.0}}\n";

static const char generation_text[] = "{\"eos_token_id\": [2, 3], \"do_sample\": true}\n";

/* One tensor, one shard or one case per line. */
/* clang-format off */
#define LAYER "model.layers.0."
#define TENSOR(name, shape, range) \
    "\"" name "\":{\"dtype\":\"BF16\",\"shape\":[" shape "],\"data_offsets\":[" range "]}"
#define FIRST_TENSORS \
    "{\"__metadata__\":{\"format\":\"pt\"}," \
    TENSOR("model.embed_tokens.weight", "5,4", "0,40") "," \
    TENSOR(LAYER "input_layernorm.weight", "4", "40,48") "," \
    TENSOR(LAYER "self_attn.q_proj.weight", "4,4", "48,80") "," \
    TENSOR(LAYER "self_attn.k_proj.weight", "2,4", "80,96") "," \
    TENSOR(LAYER "self_attn.v_proj.weight", "2,4", "96,112") "," \
    TENSOR(LAYER "self_attn.o_proj.weight", "4,4", "112,144") "," \
    TENSOR(LAYER "post_attention_layernorm.weight", "4", "144,152") "," \
    TENSOR(LAYER "mlp.gate_proj.weight", "6,4", "152,200") "," \
    TENSOR(LAYER "mlp.up_proj.weight", "6,4", "200,248") "," \
    TENSOR(LAYER "mlp.down_proj.weight", "4,6", "248,296")

static const char single_header[] =
    FIRST_TENSORS ","
    TENSOR("model.norm.weight", "4", "296,304") ","
    TENSOR("lm_head.weight", "5,4", "304,344") "}  ";
static const char first_header[] = FIRST_TENSORS "}";
static const char second_header[] =
    "{" TENSOR("model.norm.weight", "4", "0,8") ","
    TENSOR("lm_head.weight", "5,4", "8,48") "}";

#define TEN     "abcdefghij"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

#define IN(name, shard) "\"" name "\": \"" shard "\""
static const char index_text[] =
    "{\"metadata\": {\"total_size\": 344}, \"weight_map\": {\n"
    IN("model.embed_tokens.weight", SHARD1) ",\n"
    IN(LAYER "input_layernorm.weight", SHARD1) ",\n"
    IN(LAYER "self_attn.q_proj.weight", SHARD1) ",\n"
    IN(LAYER "self_attn.k_proj.weight", SHARD1) ",\n"
    IN(LAYER "self_attn.v_proj.weight", SHARD1) ",\n"
    IN(LAYER "self_attn.o_proj.weight", SHARD1) ",\n"
    IN(LAYER "post_attention_layernorm.weight", SHARD1) ",\n"
    IN(LAYER "mlp.gate_proj.weight", SHARD1) ",\n"
    IN(LAYER "mlp.up_proj.weight", SHARD1) ",\n"
    IN(LAYER "mlp.down_proj.weight", SHARD1) ",\n"
    IN("model.norm.weight", SHARD2) ",\n"
    IN("lm_head.weight", SHARD2) "}}\n";

#define NESTED8 "[[[[[[[["

const damaged_model damaged_models[] = {
    /* safetensors: the frame */
    {"st-empty", false, CUT, SINGLE, NULL, NULL, 0, "too few for a safetensors file"},
    {"st-seven-bytes", false, CUT, SINGLE, NULL, NULL, 7, "7 bytes are too few"},
    {"st-only-length", false, CUT, SINGLE, NULL, NULL, 8, "it is cut off"},
    {"st-cut-in-header", false, CUT, SINGLE, NULL, NULL, 300, "it is cut off"},
    {"st-cut-in-data", false, CUT, SINGLE, NULL, NULL, 1300, "it is cut off"},
    {"st-one-byte-more", false, GROW, SINGLE, NULL, NULL, 1, "it is too long"},
    {"st-header-length-0", false, PREFIX, SINGLE, NULL, NULL, 0, "does not begin with '{'"},
    {"st-header-length-short", false, PREFIX, SINGLE, NULL, NULL, 100, "not valid JSON"},
    {"st-header-length-long", false, PREFIX, SINGLE, NULL, NULL, 1250, "not valid JSON"},
    {"st-header-length-beyond", false, PREFIX, SINGLE, NULL, NULL, 99999999, "it is cut off"},
    {"st-header-over-cap", false, PREFIX, SINGLE, NULL, NULL, 100000001,
     "100,000,000 are the most"},
    {"st-header-length-max", false, PREFIX, SINGLE, NULL, NULL, -1, "18446744073709551615"},
    {"st-missing", false, REMOVE, SINGLE, NULL, NULL, 0, "neither model.safetensors nor"},
    {"st-is-text", false, REPLACE, SINGLE, NULL, "version https://git-lfs.github.com/spec/v1\n", 0,
     "the header claims"},

    /* safetensors: the header's JSON */
    {"st-array", false, HEADER, SINGLE, NULL, "[]", 0, "does not begin with '{'"},
    {"st-space-first", false, HEADER, SINGLE, NULL, " {}", 0, "does not begin with '{'"},
    {"st-no-tensors", false, HEADER, SINGLE, NULL, "{}", 0, "the file at 344: it is too long"},
    {"st-trailing-comma", false, HEADER, SINGLE, "[304,344]}", "[304,344]},", 0, "not valid JSON"},
    {"st-two-values", false, HEADER, SINGLE, "}  ", "}{}", 0, "text after the end of the value"},
    {"st-nul-padding", false, HEADER, SINGLE, "}  ", "}\x01\x01", 0, "text after the end of the value"},
    {"st-not-utf8", false, HEADER, SINGLE, "model.norm", "model.n\xFFrm", 0, "not UTF-8"},
    {"st-nul-in-name", false, HEADER, SINGLE, "model.norm", "model.n\\u0000rm", 0, "\\u0000"},
    {"st-nested", false, HEADER, SINGLE, "[5,4]",
     NESTED8 NESTED8 NESTED8 NESTED8 NESTED8 NESTED8 NESTED8 NESTED8, 0, "64 levels of nesting"},
    {"st-name-twice", false, HEADER, SINGLE, "model.norm.weight", "lm_head.weight", 0,
     "\"lm_head.weight\" is given twice"},
    {"st-metadata-number", false, HEADER, SINGLE, "\"format\":\"pt\"", "\"format\":1", 0,
     "every value must be a string"},
    {"st-metadata-array", false, HEADER, SINGLE, "{\"format\":\"pt\"}", "[]", 0,
     "__metadata__ must be an object"},

    /* safetensors: one entry */
    {"st-entry-string", false, HEADER, SINGLE, "{\"__metadata__\":{\"format\":\"pt\"},",
     "{\"x\":\"y\",", 0, "tensor x: its entry is not an object"},
    {"st-entry-key", false, HEADER, SINGLE, "\"shape\":[4],", "\"shape\":[4],\"stride\":[1],", 0,
     "does not know the key \"stride\""},
    {"st-dtype-missing", false, HEADER, SINGLE, "\"dtype\":\"BF16\",", "", 0,
     "dtype: the key is missing"},
    {"st-dtype-unknown", false, HEADER, SINGLE, "BF16", "BF17", 0, "dtype \"BF17\""},
    {"st-dtype-number", false, HEADER, SINGLE, "\"BF16\"", "16", 0, "dtype: must be a string"},
    {"st-shape-missing", false, HEADER, SINGLE, "\"shape\":[5,4],", "", 0,
     "shape: the key is missing"},
    {"st-shape-number", false, HEADER, SINGLE, "[5,4]", "20", 0, "shape: must be an array"},
    {"st-shape-negative", false, HEADER, SINGLE, "[5,4]", "[-5,-4]", 0, "must be between 0"},
    {"st-shape-fraction", false, HEADER, SINGLE, "[5,4]", "[2.5,8]", 0, "whole number"},
    {"st-shape-string", false, HEADER, SINGLE, "[5,4]", "[\"5\",4]", 0, "whole number"},
    {"st-shape-huge", false, HEADER, SINGLE, "[5,4]", "[4503599627370496,4503599627370496]", 0,
     "more elements than 64 bits"},
    {"st-shape-overflow", false, HEADER, SINGLE, "[5,4]", "[4503599627370496,2048]", 0,
     "no whole number of bytes"},
    {"st-shape-over-53-bits", false, HEADER, SINGLE, "[5,4]", "[9007199254740993,1]", 0,
     "must be between 0"},
    {"st-shape-rank-9", false, HEADER, SINGLE, "[5,4]", "[1,1,1,1,1,1,1,5,4]", 0,
     "more than 8 dimensions"},
    {"st-shape-wrong-size", false, HEADER, SINGLE, "[5,4]", "[5,5]", 0,
     "make 50 bytes, data_offsets hold 40"},
    {"st-half-bytes", false, HEADER, SINGLE, "\"BF16\",\"shape\":[5,4]", "\"F4\",\"shape\":[5]", 0,
     "no whole number of bytes"},
    {"st-offsets-missing", false, HEADER, SINGLE, ",\"data_offsets\":[0,40]", "", 0,
     "data_offsets: the key is missing"},
    {"st-offsets-one", false, HEADER, SINGLE, "[0,40]", "[0]", 0, "must be two numbers"},
    {"st-offsets-three", false, HEADER, SINGLE, "[0,40]", "[0,40,80]", 0, "must be two numbers"},
    {"st-offsets-backwards", false, HEADER, SINGLE, "[0,40]", "[40,0]", 0, "end before they begin"},
    {"st-offsets-negative", false, HEADER, SINGLE, "[0,40]", "[-40,0]", 0, "must be between 0"},
    {"st-offsets-beyond", false, HEADER, SINGLE, "[304,344]", "[9007199254740951,9007199254740991]",
     0, "a hole"},

    /* safetensors: the ranges together */
    {"st-hole", false, HEADER, SINGLE, "[0,40]", "[4,44]", 0, "the file has a hole"},
    {"st-overlap", false, HEADER, SINGLE, "[40,48]", "[32,40]", 0, "tensors that overlap"},
    {"st-same-range", false, HEADER, SINGLE, "[80,96]", "[96,112]", 0, "the file has a hole"},
    {"st-tensor-lost", false, HEADER, SINGLE, "," TENSOR("lm_head.weight", "5,4", "304,344"), "", 0,
     "the tensors end at byte 304 of the data, the file at 344"},

    /* the index and its shards */
    {"index-truncated", true, CUT, INDEX, NULL, NULL, 200, "not valid JSON"},
    {"index-empty", true, CUT, INDEX, NULL, NULL, 0, "not valid JSON"},
    {"index-no-map", true, REPLACE, INDEX, "weight_map", "weights", 0,
     "weight_map: the key is missing"},
    {"index-map-array", true, REPLACE, INDEX, NULL, "{\"weight_map\": []}", 0, "must be an object"},
    {"index-map-empty", true, REPLACE, INDEX, NULL, "{\"weight_map\": {}}", 0,
     "weight_map is empty"},
    {"index-name-twice", true, REPLACE, INDEX, "lm_head.weight", "model.norm.weight", 0,
     "is given twice"},
    {"index-shard-number", true, REPLACE, INDEX, "\"" SHARD2 "\"", "2", 0, "is not a string"},
    {"index-shard-parent", true, REPLACE, INDEX, SHARD2, "../" SHARD2, 0, "in the same folder"},
    {"index-shard-absolute", true, REPLACE, INDEX, SHARD2, "/etc/passwd.safetensors", 0,
     "in the same folder"},
    {"index-shard-below", true, REPLACE, INDEX, SHARD2, "x/y.safetensors", 0, "in the same folder"},
    {"index-shard-backslash", true, REPLACE, INDEX, SHARD2, "..\\\\y.safetensors", 0,
     "in the same folder"},
    {"index-shard-hidden", true, REPLACE, INDEX, SHARD2, ".safetensors", 0, "in the same folder"},
    {"index-shard-other-kind", true, REPLACE, INDEX, SHARD2, "pytorch_model.bin", 0,
     "in the same folder"},
    {"index-shard-unknown", true, REPLACE, INDEX, SHARD2, "none.safetensors", 0,
     "No such file or directory"},
    {"index-shard-escape", true, REPLACE, INDEX, SHARD2, "\\u001b]0;x\\u0007.bin", 0,
     "the shard \"?]0;x?.bin\" of"},
    {"index-shard-missing", true, REMOVE, SHARD2, NULL, NULL, 0, "No such file or directory"},
    {"index-wrong-shard", true, REPLACE, INDEX, IN("model.norm.weight", SHARD2),
     IN("model.norm.weight", SHARD1), 0, "not in " SHARD1 " as the index says"},
    {"index-tensor-unknown", true, REPLACE, INDEX, "lm_head.weight", "lm_head.bias", 0,
     "in none of the shards"},
    {"index-tensor-unlisted", true, REPLACE, INDEX, ",\n" IN("lm_head.weight", SHARD2), "", 0,
     "but not in the index"},
    {"index-tensor-in-two-shards", true, HEADER, SHARD2, "lm_head.weight",
     "model.embed_tokens.weight", 0, "is in two shards"},
    {"shard-cut", true, CUT, SHARD1, NULL, NULL, 1200, "it is cut off"},
    {"shard-longer", true, GROW, SHARD2, NULL, NULL, 8, "it is too long"},

    /* config.json: damage */
    {"config-missing", false, REMOVE, CONFIG, NULL, NULL, 0, "No such file or directory"},
    {"config-empty", false, CUT, CONFIG, NULL, NULL, 0, "not valid JSON"},
    {"config-truncated", false, CUT, CONFIG, NULL, NULL, 200, "not valid JSON"},
    {"config-array", false, REPLACE, CONFIG, NULL, "[1, 2]", 0, "must be a JSON object"},
    {"config-key-twice", false, REPLACE, CONFIG, "\"vocab_size\": 5",
     "\"vocab_size\": 5, \"head_dim\": 2", 0, "\"head_dim\" is given twice"},
    {"config-comment", false, REPLACE, CONFIG, "\n", " // a comment\n", 0, "not valid JSON"},
    {"config-nan", false, REPLACE, CONFIG, "1e-5", "NaN", 0, "rms_norm_eps: must be a number"},
    {"config-number-overflows", false, REPLACE, CONFIG, "10000.0", "1e999", 0, "too large"},
    {"config-byte-order-mark", false, REPLACE, CONFIG, "{\"arch", "\xEF\xBB\xBF{\"arch", 0,
     "byte order mark (BOM) of UTF-8; save it as UTF-8 without one"},
    {"config-no-hidden", false, REPLACE, CONFIG, "hidden_size", "hidden", 0,
     "hidden_size: the key is missing"},
    {"config-hidden-string", false, REPLACE, CONFIG, "\"hidden_size\": 4", "\"hidden_size\": \"4\"",
     0, "hidden_size: must be a whole number"},
    {"config-hidden-fraction", false, REPLACE, CONFIG, "\"hidden_size\": 4", "\"hidden_size\": 4.5",
     0, "hidden_size: must be a whole number"},
    {"config-layers-0", false, REPLACE, CONFIG, "layers\": 1", "layers\": 0", 0,
     "must be between 1"},
    {"config-layers-negative", false, REPLACE, CONFIG, "layers\": 1", "layers\": -1", 0,
     "must be between 1"},
    {"config-layers-absurd", false, REPLACE, CONFIG, "layers\": 1", "layers\": 2000000000", 0,
     "num_hidden_layers: must be between 1"},
    {"config-vocab-absurd", false, REPLACE, CONFIG, "vocab_size\": 5",
     "vocab_size\": 9007199254740991", 0, "vocab_size: must be between 1"},
    {"config-kv-heads", false, REPLACE, CONFIG, "key_value_heads\": 1", "key_value_heads\": 3", 0,
     "2 heads cannot share 3"},
    {"config-head-dim-odd", false, REPLACE, CONFIG, "head_dim\": 2", "head_dim\": 3", 0,
     "must be even"},
    {"config-heads-uneven", false, REPLACE, CONFIG,
     "\"num_attention_heads\": 2,\n \"num_key_value_heads\": 1, \"head_dim\": 2",
     "\"num_attention_heads\": 3", 0, "not a multiple of 3 heads"},
    {"config-eps-0", false, REPLACE, CONFIG, "1e-5", "0", 0, "rms_norm_eps"},
    {"config-tied-text", false, REPLACE, CONFIG, "embeddings\": false", "embeddings\": \"no\"", 0,
     "tie_word_embeddings: must be true or false"},
    {"config-theta-negative", false, REPLACE, CONFIG, "10000.0", "-1", 0, "rope_theta"},

    /* config.json: what cannot be represented */
    {"config-architecture-escape", false, REPLACE, CONFIG, "LlamaForCausalLM",
     "\\u001b[2J\\u009b31m\\n\\u202ETheirs\\u007f", 0, "?[2J?31m??Theirs? is not supported"},
    {"config-architecture-long", false, REPLACE, CONFIG, "LlamaForCausalLM",
     HUNDRED HUNDRED HUNDRED, 0, HUNDRED "... is not supported; these architectures can be represented: Llama"},
    {"config-architecture", false, REPLACE, CONFIG, "LlamaForCausalLM", "MixtralForCausalLM", 0,
     "MixtralForCausalLM is not supported"},
    {"config-no-architecture", false, REPLACE, CONFIG,
     "\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",", "", 0,
     "architectures: the key is missing"},
    {"config-model-type", false, REPLACE, CONFIG, "\"llama\"", "\"llama4\"", 0,
     "\"llama4\" is not supported"},
    {"config-activation", false, REPLACE, CONFIG, "\"silu\"", "\"gelu\"", 0,
     "the activation \"gelu\""},
    {"config-attention-bias", false, REPLACE, CONFIG, "\n", "\"attention_bias\": true,\n", 0,
     "layers.0.self_attn.q_proj.bias: the tensor is missing (as are 3 more"},
    {"config-mlp-bias", false, REPLACE, CONFIG, "\n", "\"mlp_bias\": true,\n", 0,
     "layers.0.mlp.gate_proj.bias: the tensor is missing (as are 2 more"},
    {"config-sliding-window-text", false, REPLACE, CONFIG, "\n", "\"sliding_window\": \"8\",\n", 0,
     "sliding_window: must be"},
    {"config-layer-types", false, REPLACE, CONFIG, "\n",
     "\"layer_types\": [\"sliding_attention\"],\n", 0,
     "a layer has sliding_attention, but no window is given"},
    {"config-experts", false, REPLACE, CONFIG, "\n", "\"num_local_experts\": 8,\n", 0,
     "num_local_experts: 8: mixtures of experts"},
    {"config-quantized", false, REPLACE, CONFIG, "\n", "\"quantization_config\": {\"bits\": 4},\n",
     0, "quantization_config.quant_method: the key is missing; it must name the layout"},
    {"config-multiplier", false, REPLACE, CONFIG, "\n", "\"attention_multiplier\": 0.1,\n", 0,
     "attention_multiplier: 0.1"},
    {"config-logits-scaling", false, REPLACE, CONFIG, "\n", "\"logits_scaling\": 8,\n", 0,
     "logits_scaling: 8"},
    {"config-partial-rotary", false, REPLACE, CONFIG, "\n", "\"partial_rotary_factor\": 0.5,\n", 0,
     "partial_rotary_factor: 0.5: rope on a part"},
    {"config-rope-partial", false, REPLACE, CONFIG, "\"default\"",
     "\"default\", \"partial_rotary_factor\": 0.25", 0,
     "rope_parameters.partial_rotary_factor: 0.25"},
    {"config-rope-yarn", false, REPLACE, CONFIG, "\"default\"", "\"yarn\"", 0,
     "rope_parameters.factor: the key is missing"},
    {"config-rope-proportional", false, REPLACE, CONFIG, "\"default\"", "\"proportional\"", 0,
     "the rope type \"proportional\" is not supported"},
    {"config-rope-longrope", false, REPLACE, CONFIG, "\"default\"",
     "\"longrope\", \"short_factor\": [1], \"long_factor\": [1, 2]", 0,
     "rope_parameters.long_factor: [1,2]: it must be a list of head_dim / 2 = 1 numbers"},
    {"config-rope-key", false, REPLACE, CONFIG, "\"default\"",
     "\"linear\", \"factor\": 2, \"beta_fast\": 32", 0,
     "rope_parameters.beta_fast: the key means nothing"},
    {"config-rope-no-factor", false, REPLACE, CONFIG, "\"default\"", "\"linear\"", 0,
     "rope_parameters.factor: the key is missing"},
    {"config-rope-factor-0", false, REPLACE, CONFIG, "\"default\"", "\"linear\", \"factor\": 0", 0,
     "factor must be above 0"},
    {"config-rope-llama3-keys", false, REPLACE, CONFIG, "\"default\"", "\"llama3\", \"factor\": 8",
     0, "low_freq_factor: the key is missing"},
    {"config-rope-llama3-order", false, REPLACE, CONFIG, "\"default\"",
     "\"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 1, "
     "\"original_max_position_embeddings\": 8",
     0, "below high_freq_factor"},
    {"config-rope-llama3-context", false, REPLACE, CONFIG, "\"default\"",
     "\"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
     "\"original_max_position_embeddings\": 0", 0, "must be at least 1"},
    {"config-rope-dynamic-context", false, REPLACE, CONFIG, "\"default\"",
     "\"dynamic\", \"factor\": 2, \"original_max_position_embeddings\": 8", 0,
     "dynamic rope with its own original_max_position_embeddings"},
    {"config-rope-both", false, REPLACE, CONFIG, "\n",
     "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2},\n", 0, "contradicts rope_scaling"},
    {"config-rope-theta-zero-too", false, REPLACE, CONFIG, "\n", "\"rope_theta\": 0,\n", 0,
     "0 contradicts rope_parameters.rope_theta"},
    {"config-rope-theta-negative-too", false, REPLACE, CONFIG, "\n", "\"rope_theta\": -1,\n", 0,
     "-1 contradicts rope_parameters.rope_theta"},
    {"config-rope-theta-zero-beside", false, REPLACE, CONFIG,
     ", \"rope_theta\": 10000.0}", "}, \"rope_theta\": 0", 0,
     "rope_theta: 0 is not supported; it must be above 0"},
    {"config-rope-theta-both", false, REPLACE, CONFIG, "\n", "\"rope_theta\": 500000.0,\n", 0,
     "contradicts rope_parameters.rope_theta"},
    {"config-rope-array", false, REPLACE, CONFIG,
     "{\"rope_type\": \"default\", \"rope_theta\": 10000.0}", "[]", 0,
     "rope_parameters: must be an object"},

    /* tensors against config.json */
    {"tensor-missing", false, HEADER, SINGLE, "model.norm.weight", "model.norm.wait", 0,
     "model.norm.weight: the tensor is missing"},
    {"tensor-missing-layer", false, REPLACE, CONFIG, "layers\": 1", "layers\": 2", 0,
     "model.layers.1.input_layernorm.weight: the tensor is missing (as are 8 more"},
    {"tensor-missing-head", false, HEADER, SINGLE, "lm_head.weight", "lm_head.rotary_emb.inv_freq",
     0, "lm_head.weight: the tensor is missing"},
    {"tensor-layer-beyond", false, HEADER, SINGLE, "layers.0.mlp.up", "layers.1.mlp.up", 0,
     "layers.0.mlp.up_proj.weight: the tensor is missing"},
    {"tensor-shape", false, HEADER, SINGLE, "[2,4]", "[4,2]", 0,
     "k_proj.weight: its shape is [4, 2]; config.json makes it [2, 4]"},
    {"tensor-rank", false, HEADER, SINGLE, "[6,4]", "[6,2,2]", 0,
     "gate_proj.weight: its shape is [6, 2, 2]; config.json makes it [6, 4]"},
    {"tensor-vocabulary", false, REPLACE, CONFIG, "vocab_size\": 5", "vocab_size\": 6", 0,
     "its shape is [5, 4]; config.json makes it [6, 4]"},
    {"tensor-dtype", false, HEADER, SINGLE, "\"BF16\",\"shape\":[6,4]", "\"I16\",\"shape\":[6,4]",
     0, "gate_proj.weight: its dtype I16 is not supported"},
    {"tensor-bias", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR(LAYER "self_attn.q_proj.bias", "0", "344,344"), 0,
     "q_proj.bias: a bias that config.json does not give the model"},
    {"tensor-q-norm", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR(LAYER "self_attn.q_norm.weight", "0", "344,344"), 0,
     "q_norm.weight: a norm of q or k that config.json does not give the model"},
    {"tensor-experts", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR(LAYER "mlp.experts.0.up_proj.weight", "0", "344,344"), 0,
     "experts.0.up_proj.weight: mixtures of experts"},
    {"tensor-fused-qkv", false, HEADER, SINGLE, "self_attn.q_proj", "self_attn.qkv_proj", 0,
     "q_proj.weight: the tensor is missing (and 1 more reason,"},
    {"tensor-fused-gate-up", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR(LAYER "mlp.gate_up_proj.weight", "0", "344,344"), 0,
     "gate_up_proj.weight: this architecture has no fused projections"},
    {"tensor-quantized", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR(LAYER "mlp.up_proj.weight_scale", "0", "344,344"), 0,
     "up_proj.weight_scale: a part of a quantized matrix"},
    {"tensor-escape", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR("a\\u001b[31m\\rb", "0", "344,344"), 0, "a?[31m?b: a model with"},
    {"tensor-long", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR(HUNDRED HUNDRED HUNDRED HUNDRED, "0", "344,344"), 0,
     "a model with this configuration has no such tensor"},
    {"tensor-unexpected", false, HEADER, SINGLE, "[304,344]}",
     "[304,344]}," TENSOR("model.value_head.weight", "0", "344,344"), 0,
     "model.value_head.weight: a model with this configuration has no such tensor"},
    {"tensor-norm-rank", false, HEADER, SINGLE,
     "model.norm.weight\":{\"dtype\":\"BF16\",\"shape\":[4]",
     "model.norm.weight\":{\"dtype\":\"BF16\",\"shape\":[2,2]", 0,
     "model.norm.weight: its shape is [2, 2]; config.json makes it [4]"},

    /* generation_config.json */
    {"generation-truncated", false, CUT, GENERATION, NULL, NULL, 20, "not valid JSON"},
    {"generation-array", false, REPLACE, GENERATION, NULL, "[]", 0, "must be a JSON object"},
    {"generation-config-eos", false, REPLACE, CONFIG, "\"eos_token_id\": 2", "\"eos_token_id\": \"x\"",
     0, "config.json: eos_token_id: must be a whole number"},
    {"generation-eos-text", false, REPLACE, GENERATION, "[2, 3]", "\"</s>\"", 0,
     "eos_token_id: must be a whole number"},
    {"generation-eos-nested", false, REPLACE, GENERATION, "[2, 3]", "[2, [3]]", 0,
     "eos_token_id: must be a whole number"},
    {"generation-eos-fraction", false, REPLACE, GENERATION, "[2, 3]", "2.5", 0,
     "must be a whole number"},
    {"generation-sample-number", false, REPLACE, GENERATION, "true", "1", 0,
     "do_sample: must be true or false"},
    {"generation-temperature", false, REPLACE, GENERATION, "true", "true, \"temperature\": -1", 0,
     "temperature is -1"},
    {"generation-top-p", false, REPLACE, GENERATION, "true", "true, \"top_p\": 1.5", 0,
     "top_p is 1.5"},
    {"generation-top-k", false, REPLACE, GENERATION, "true", "true, \"top_k\": -1", 0,
     "top_k: must be between 0"},
};
/* clang-format on */

const size_t damaged_model_count = sizeof damaged_models / sizeof *damaged_models;

bool only_visible(const char *text)
{
    static const char *const forbidden[] = {"\u202A", "\u202B", "\u202C", "\u202D", "\u202E",
                                            "\u2066", "\u2067", "\u2068", "\u2069", "\u200E",
                                            "\u200F", "\u061C", "\u2028", "\u2029"};
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if ((byte < 0x20 && byte != '\n') || byte == 0x7F ||
            (byte == 0xC2 && (unsigned char)at[1] < 0xA0))
            return false;
    }
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (strstr(text, forbidden[i]))
            return false;
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A file of a valid model: a text; for safetensors, also the data. */
static const struct good_file {
    bool single, sharded; /* which of the two valid models have it */
    const char *name, *text;
    long data; /* -1: a text file */
} good_files[] = {
    {true, true, CONFIG, config_text, -1},     {true, true, GENERATION, generation_text, -1},
    {true, false, SINGLE, single_header, 344}, {false, true, INDEX, index_text, -1},
    {false, true, SHARD1, first_header, 296},  {false, true, SHARD2, second_header, 48},
};

/* Applies the edit's replacement to `text`; false if there is nothing to replace. */
static bool replace(const char *text, const damaged_model *model, char *out, size_t size)
{
    if (!model->from)
        return snprintf(out, size, "%s", model->to) < (int)size;
    const char *found = strstr(text, model->from);
    return found && snprintf(out, size, "%.*s%s%s", (int)(found - text), text, model->to,
                             found + strlen(model->from)) < (int)size;
}

static bool write_file(const struct good_file *good, const damaged_model *model, edit_kind edit,
                       const char *path)
{
    char text[8192];
    snprintf(text, sizeof text, "%s", good->text);
    if ((edit == REPLACE || edit == HEADER) && !replace(good->text, model, text, sizeof text))
        return false;
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    if (good->data >= 0 && edit != REPLACE) {
        uint64_t length = edit == PREFIX ? (uint64_t)model->number : strlen(text);
        for (int i = 0; i < 8; i++)
            fputc((int)(length >> 8 * i & 0xFF), file);
    }
    fputs(text, file);
    for (long i = 0; edit != REPLACE && i < good->data; i += 2) /* bf16: small and positive */
        fputc((int)(i * 7 & 0xFF), file), fputc(0x3E, file);
    for (long long i = 0; edit == GROW && i < model->number; i++)
        fputc(0, file);
    return !(ferror(file) | fclose(file)) && (edit != CUT || !truncate(path, model->number));
}

bool write_damaged_model(const damaged_model *model, const char *folder)
{
    bool edited = model->edit == NONE;
    char path[1024];
    if (mkdir(folder, 0777))
        return false;
    for (size_t i = 0; i < sizeof good_files / sizeof *good_files; i++) {
        const struct good_file *good = &good_files[i];
        bool target = model->edit != NONE && !strcmp(model->file, good->name);
        if (!(model->sharded ? good->sharded : good->single))
            continue;
        edited |= target;
        if (target && model->edit == REMOVE)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, good->name);
        if (!write_file(good, model, target ? model->edit : NONE, path))
            return false;
    }
    return edited;
}
