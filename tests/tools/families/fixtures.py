"""
The checkpoints of tests/models/families: config.json of each, small, in the publisher's own form.
Options: `v5`: Transformers 5 writes the config in place of it. `names`: prefixes of tensors to
rename from those of the model's modules; without, Transformers saves under the publisher's names.
`short`: scaled rope has another table up to this length. `build`, `read`: other values of keys
while the weights are made, while Transformers reads the files.
"""
TEXT = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 256,
    "vocab_size": 160,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": True,
    "torch_dtype": "bfloat16",
}
SHORT = [round(1 + 0.03 * i, 4) for i in range(16)]  # heads of 32
LONG = [round(1.05 + 0.4 * i, 4) for i in range(16)]


def text(architecture, model_type, **keys):
    return {"architectures": [architecture], "model_type": model_type, **TEXT, **keys}


def phi3(**keys):
    return text(
        "Phi3ForCausalLM",
        "phi3",
        **{
            "attention_bias": False,
            "attention_dropout": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "original_max_position_embeddings": 64,
            "rms_norm_eps": 1e-05,
            "rope_theta": 10000.0,
            "sliding_window": 262144,
            "tie_word_embeddings": False,
            "pad_token_id": 0,
            **keys,
        },
    )


def longrope(name, **keys):
    """Phi-3-mini-128k."""
    return phi3(rope_scaling={"long_factor": LONG, "short_factor": SHORT, "type": name}, **keys)


def exaone(**keys):
    """EXAONE 3.5: other names for the keys as well as for the tensors."""
    config = text("ExaoneForCausalLM", "exaone")
    for key in ("num_hidden_layers", "hidden_act"):
        del config[key]
    return {
        **config,
        "activation_function": "silu",
        "attention_dropout": 0.0,
        "embed_dropout": 0.0,
        "head_dim": 16,
        "layer_norm_epsilon": 1e-05,
        "num_layers": 2,
        "pad_token_id": 0,
        "rope_scaling": {
            "factor": 8.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 64,
            "rope_type": "llama3",
        },
        "rope_theta": 1000000.0,
        "tie_word_embeddings": True,
        "transformers_version": "4.43.0",
        **keys,
    }


def internlm3(**keys):
    return text(
        "InternLM3ForCausalLM",
        "internlm3",
        **{
            "attention_dropout": 0.0,
            "bias": False,
            "head_dim": 32,
            "pad_token_id": 2,
            "qkv_bias": False,
            "rms_norm_eps": 1e-05,
            "rope_scaling": {"factor": 6.0, "rope_type": "dynamic"},
            "rope_theta": 50000000,
            "tie_word_embeddings": False,
            **keys,
        },
    )


def seed_oss(**keys):
    return text(
        "SeedOssForCausalLM",
        "seed_oss",
        **{
            "attention_bias": True,
            "attention_dropout": 0.1,
            "attention_out_bias": False,
            "bos_token_id": 0,
            "head_dim": 32,
            "mlp_bias": False,
            "pad_token_id": 1,
            "residual_dropout": 0.1,
            "rms_norm_eps": 1e-06,
            "rope_scaling": {"rope_type": "default"},
            "rope_theta": 10000000.0,
            "tie_word_embeddings": False,
            **keys,
        },
    )


def ernie(**keys):
    return text(
        "Ernie4_5ForCausalLM",
        "ernie4_5",
        **{
            "head_dim": 32,
            "pad_token_id": 0,
            "rms_norm_eps": 1e-05,
            "rope_theta": 500000.0,
            "tie_word_embeddings": True,
            "use_bias": False,
            **keys,
        },
    )


def helium(**keys):
    return text(
        "HeliumForCausalLM",
        "helium",
        **{
            "attention_bias": False,
            "attention_dropout": 0.0,
            "head_dim": 16,
            "mlp_bias": False,
            "num_key_value_heads": 4,
            "pad_token_id": 3,
            "rms_norm_eps": 1e-08,
            "rope_theta": 100000.0,
            "tie_word_embeddings": False,
            **keys,
        },
    )


PIXTRAL = {
    "attention_dropout": 0.0,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 32,
    "image_size": 28,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "model_type": "pixtral",
    "num_attention_heads": 2,
    "num_channels": 3,
    "num_hidden_layers": 1,
    "patch_size": 4,
    "rope_theta": 10000.0,
}
CLIP = {
    "hidden_size": 32,
    "image_size": 16,
    "intermediate_size": 48,
    "model_type": "clip_vision_model",
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "patch_size": 4,
    "projection_dim": 32,
    "vocab_size": 160,
}


def inner(model_type, **keys):
    config = {key: value for key, value in TEXT.items() if key != "torch_dtype"}
    return {"model_type": model_type, **config, **keys}


def mistral3(**keys):
    """Mistral Small 3.1."""
    return {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "image_token_index": 10,
        "model_type": "mistral3",
        "multimodal_projector_bias": False,
        "projector_hidden_act": "gelu",
        "spatial_merge_size": 2,
        "text_config": inner(
            "mistral",
            attention_dropout=0.0,
            head_dim=32,
            rms_norm_eps=1e-05,
            rope_theta=1000000000.0,
            sliding_window=None,
        ),
        "torch_dtype": "bfloat16",
        "transformers_version": "4.50.0.dev0",
        "vision_config": PIXTRAL,
        "vision_feature_layer": -1,
        **keys,
    }


def llava(inside, **keys):
    return {
        "architectures": ["LlavaForConditionalGeneration"],
        "ignore_index": -100,
        "image_token_index": 150,
        "model_type": "llava",
        "projector_hidden_act": "gelu",
        "text_config": inside,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.36.0.dev0",
        "vision_config": CLIP,
        "vision_feature_layer": -2,
        "vision_feature_select_strategy": "default",
        "vocab_size": 160,
        **keys,
    }


def yarn(**keys):
    return {"factor": 4.0, "original_max_position_embeddings": 64, "rope_type": "yarn", **keys}


QWEN2 = {
    "attention_dropout": 0.0,
    "max_window_layers": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 256,
    "use_sliding_window": False,
    "tie_word_embeddings": True,
}
LLAMA = {"rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": False}
NAMES_OF_LLAVA = {  # the tensor names of checkpoints before Transformers 4.52, in their order
    "lm_head.": "language_model.lm_head.",
    "model.language_model.": "language_model.model.",
    "model.vision_tower.": "vision_tower.",
    "model.multi_modal_projector.": "multi_modal_projector.",
    "model.image_newline": "image_newline",
}

#  name: (config, options)
FIXTURES = {
    "qwen2-yarn": (
        text("Qwen2ForCausalLM", "qwen2", **QWEN2, rope_scaling={
            "factor": 4.0, "original_max_position_embeddings": 64, "type": "yarn"}), {}),
    "llama-yarn": (
        text("LlamaForCausalLM", "llama", **LLAMA, rope_scaling=yarn(
            attention_factor=1.3, beta_fast=16.0, beta_slow=2.0)), {}),
    "qwen3-yarn": (
        text("Qwen3ForCausalLM", "qwen3", **{**QWEN2, "rope_theta": 10000.0}, head_dim=32,
             attention_bias=False, rope_scaling=yarn(
                 factor=8.0, mscale=1.0, mscale_all_dim=0.7, truncate=False)), {"v5": True}),
    "phi3-longrope": (longrope("longrope"), {"short": 64}),
    "phi3-longrope-v5": (
        longrope("longrope", sliding_window=None, num_key_value_heads=1),
        {"short": 64, "v5": True}),
    # Transformers 5.24 fails on "su" with original_max_position_embeddings outside rope_scaling.
    "phi3-su": (longrope("su"), {
        "short": 64,
        "build": longrope("longrope"),
        "read": longrope("longrope")}),
    "phi3-yarn": (longrope("yarn"), {"short": 64}),
    "llama-longrope": (
        text("LlamaForCausalLM", "llama", **{**LLAMA, "num_attention_heads": 2}, rope_scaling={
            "attention_factor": 1.25, "factor": 4.0, "long_factor": LONG,
            "original_max_position_embeddings": 64, "rope_type": "longrope",
            "short_factor": SHORT}), {"short": 64}),
    "phi3": (
        phi3(num_attention_heads=4, num_key_value_heads=1, rope_scaling=None, rope_theta=250000,
             original_max_position_embeddings=256, sliding_window=None), {}),
    # Stored with a head of its own, which the config does not say (the class ties by default).
    "mistral3": (mistral3(), {"names": NAMES_OF_LLAVA, "build": {"tie_word_embeddings": False}}),
    "mistral3-v5": (mistral3(tie_word_embeddings=False), {"v5": True, "names": {}}),
    "llava-llama": (
        llava(inner("llama", rms_norm_eps=1e-05, architectures=["LlamaForCausalLM"])),
        {"names": NAMES_OF_LLAVA}),
    "llava-qwen2-v5": (
        llava(inner("qwen2", **QWEN2), tie_word_embeddings=True), {"v5": True, "names": {}}),
    "exaone": (exaone(), {}),
    "exaone-untied": (exaone(tie_word_embeddings=False, head_dim=16), {}),
    "internlm3": (internlm3(), {}),
    "internlm3-biases": (internlm3(qkv_bias=True, bias=True), {}),
    "seed-oss": (seed_oss(), {}),
    "seed-oss-biases": (seed_oss(attention_out_bias=True, mlp_bias=True), {"v5": True}),
    "ernie4_5": (ernie(), {}),
    "ernie4_5-biases": (ernie(use_bias=True, tie_word_embeddings=False), {"v5": True}),
    "helium": (helium(), {}),
    "helium-biases": (
        helium(attention_bias=True, mlp_bias=True, num_key_value_heads=2), {"v5": True}),
}
