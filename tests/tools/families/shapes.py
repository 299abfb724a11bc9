"""
Shapes of published models, and small configs of the same shape for compare.py: head sizes, sharing of key and value heads, biases, rope and its numbers, eps, tied or not
stay; hidden size, layers, heads and vocabulary shrink.
"""
from fixtures import CLIP, NAMES_OF_LLAVA, PIXTRAL

LAYERS = 2


def shape(model, model_type, heads, head_dim, hidden=None, vocab=320, **keys):
    """heads: (query heads, key and value heads). hidden: with a head_dim of its own in the config,
    what the small model has."""
    query, kv = heads
    few = 2 if query // kv < 4 and kv > 1 else 1
    small = query // kv * few
    width = hidden or small * head_dim
    options = {key: keys.pop(key) for key in ("names", "build", "read", "wrap", "dtype", "prompts")
               if key in keys}
    config = {
        "architectures": [ARCHITECTURES[model_type]],
        "model_type": model_type,
        "hidden_size": width,
        "intermediate_size": (width * 11 // 4 + 15) // 16 * 16,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": small,
        "num_key_value_heads": few,
        "hidden_act": "silu",
        "vocab_size": vocab,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **({"head_dim": head_dim} if hidden else {}),
        **keys,
    }
    if "wrap" in options:
        config = options.pop("wrap")(config)
    note = f"{query}:{kv} x {head_dim}"
    return {"model": model, "family": model_type, "heads": note, "config": config, **options}


ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "exaone": "ExaoneForCausalLM",
    "internlm3": "InternLM3ForCausalLM",
    "seed_oss": "SeedOssForCausalLM",
    "ernie4_5": "Ernie4_5ForCausalLM",
    "helium": "HeliumForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "granite": "GraniteForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "cohere": "CohereForCausalLM",
}


def llama(model, heads, head_dim, theta=10000.0, eps=1e-5, most=4096, **keys):
    return shape(model, "llama", heads, head_dim, rope_theta=theta, rms_norm_eps=eps,
                 max_position_embeddings=most, **keys)


def llama3(factor):
    return {"factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192, "rope_type": "llama3"}


def mistral(model, heads, head_dim, theta, most=32768, window=None, **keys):
    return shape(model, "mistral", heads, head_dim, rope_theta=theta, rms_norm_eps=1e-5,
                 max_position_embeddings=most, sliding_window=window, **keys)


def qwen2(model, heads, head_dim, theta=1000000.0, tied=False, **keys):
    return shape(model, "qwen2", heads, head_dim, rope_theta=theta, tie_word_embeddings=tied,
                 **{"rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
                    "use_sliding_window": False, "sliding_window": 32768, "max_window_layers": 28,
                    **keys})


def qwen3(model, heads, hidden, tied=False, theta=1000000, **keys):
    return shape(model, "qwen3", heads, 128, hidden, rope_theta=theta, tie_word_embeddings=tied,
                 **{"attention_bias": False, "rms_norm_eps": 1e-6, "max_position_embeddings": 40960,
                    "sliding_window": None, "use_sliding_window": False, "max_window_layers": 36,
                    **keys})


def phi3(model, heads, head_dim, most=4096, original=4096, theta=10000.0, window=None, **keys):
    return shape(model, "phi3", heads, head_dim, rope_theta=theta, max_position_embeddings=most,
                 **{"original_max_position_embeddings": original, "sliding_window": window,
                    "rms_norm_eps": 1e-5, "pad_token_id": 0, **keys})


def factors(head_dim):
    """Of the size of Phi-3-mini's: from 1 to 1.4, and from 1.05 to 65."""
    n = head_dim // 2
    return {
        "short_factor": [round(1 + 0.4 * i / n, 4) for i in range(n)],
        "long_factor": [round(1.05 * 62 ** (i / (n - 1)), 4) for i in range(n)],
    }


def exaone(model, heads, head_dim, tied, scaled=True, hidden=None, **keys):
    row = shape(model, "exaone", heads, head_dim, hidden, tie_word_embeddings=tied,
                layer_norm_epsilon=1e-5, activation_function="silu", num_layers=LAYERS,
                rope_theta=1000000.0 if scaled else 500000.0,
                max_position_embeddings=32768 if scaled else 4096,
                pad_token_id=0, **({"rope_scaling": llama3(8.0)} if scaled else {}), **keys)
    for key in ("num_hidden_layers", "hidden_act"):
        del row["config"][key]
    return row


def around(architecture, model_type, vision, **keys):
    """The config of a vision-language model around the config of a text model."""

    def wrap(text):
        return {"architectures": [architecture], "model_type": model_type, "text_config": text,
                "vision_config": vision, "image_token_index": 10, "projector_hidden_act": "gelu",
                "torch_dtype": "bfloat16", **keys}

    return wrap


MISTRAL3 = around("Mistral3ForConditionalGeneration", "mistral3", PIXTRAL,
                  multimodal_projector_bias=False, spatial_merge_size=2, vision_feature_layer=-1)
LLAVA = around("LlavaForConditionalGeneration", "llava", CLIP, tie_word_embeddings=False,
               vision_feature_layer=-2, vision_feature_select_strategy="default")
PIXTRAL_12B = around("LlavaForConditionalGeneration", "llava", PIXTRAL, tie_word_embeddings=False,
                     vision_feature_layer=-1, vision_feature_select_strategy="full")

SIGLIP = {**{k: v for k, v in CLIP.items() if k != "projection_dim"},
          "model_type": "siglip_vision_model", "vision_use_head": False}
INTERNVL = {"model_type": "internvl_vision", "architectures": ["InternVLVisionModel"],
            "hidden_size": 32, "image_size": [16, 16], "patch_size": [4, 4],
            "intermediate_size": 48, "num_attention_heads": 2, "num_hidden_layers": 1}
IDEFICS = {"hidden_size": 32, "image_size": 16, "patch_size": 4, "intermediate_size": 48,
           "num_attention_heads": 2, "num_hidden_layers": 1}
LLAVA_NEXT = around("LlavaNextForConditionalGeneration", "llava_next", CLIP,
                    tie_word_embeddings=False, image_grid_pinpoints=[[16, 32]],
                    use_image_newline_parameter=True)
ONEVISION = around("LlavaOnevisionForConditionalGeneration", "llava_onevision", SIGLIP,
                   tie_word_embeddings=True, image_grid_pinpoints=[[16, 32]],
                   vision_feature_layer=-1, video_token_index=11)
VIPLLAVA = around("VipLlavaForConditionalGeneration", "vipllava", CLIP, tie_word_embeddings=False,
                  vision_feature_layers=[-2, 1])
INTERNVL3 = around("InternVLForConditionalGeneration", "internvl", INTERNVL)
IDEFICS3 = around("Idefics3ForConditionalGeneration", "idefics3",
                  {**IDEFICS, "model_type": "idefics3_vision"}, tie_word_embeddings=False)
SMOLVLM = around("SmolVLMForConditionalGeneration", "smolvlm",
                 {**IDEFICS, "model_type": "smolvlm_vision"}, tie_word_embeddings=False)

SHAPES = [
    llama("Llama 1 7B", (32, 32), 128, eps=1e-6, most=2048),
    llama("Llama 2 7B", (32, 32), 128, tie_word_embeddings=False, rope_scaling=None),
    llama("Llama 2 70B", (64, 8), 128),
    llama("Code Llama 7B", (32, 32), 128, 1e6, most=16384, vocab=337),
    llama("Llama 3 8B", (32, 8), 128, 500000.0, most=8192, attention_bias=False, mlp_bias=False),
    llama("Llama 3.1 8B", (32, 8), 128, 500000.0, most=131072, rope_scaling=llama3(8.0)),
    llama("Llama 3.2 1B", (32, 8), 64, 500000.0, most=131072, rope_scaling=llama3(32.0),
          tie_word_embeddings=True, hidden=256),
    llama("Llama 3.2 3B", (24, 8), 128, 500000.0, most=131072, rope_scaling=llama3(32.0),
          tie_word_embeddings=True, hidden=384),
    llama("Minitron 4B Width", (32, 8), 128, 500000.0, most=131072, rope_scaling=llama3(8.0),
          hidden=384),
    llama("TinyLlama 1.1B", (32, 4), 64, most=2048, dtype="float16"),
    llama("Llama 68M", (12, 12), 64, eps=1e-6, most=2048),
    llama("stories15M", (6, 6), 48, most=256, tie_word_embeddings=True, dtype="float32"),
    llama("OpenLLaMA 3B", (32, 32), 100, eps=1e-6, most=2048),
    llama("H2O Danube3 4B", (32, 8), 120, 100000, most=8192),
    llama("Falcon3 1B", (8, 4), 256, 1000042, 1e-6, most=4096, hidden=256),
    llama("Granite 3B Code", (32, 32), 80, 1e7, most=2048, attention_bias=True, mlp_bias=True,
          tie_word_embeddings=True),
    llama("Yi 6B", (32, 4), 128, 5e6),
    llama("Yi 34B", (56, 8), 128, 5e6),
    llama("DeepSeek LLM 7B", (32, 32), 128, eps=1e-6, vocab=322),
    llama("DeepSeek Coder 6.7B", (32, 32), 128, 100000, 1e-6, 16384,
          rope_scaling={"factor": 4.0, "type": "linear"}),
    llama("SmolLM2 135M", (9, 3), 64, 100000, most=8192, tie_word_embeddings=True,
          rope_interleaved=False, rope_scaling=None),
    llama("SmolLM 360M", (15, 5), 64, most=2048, tie_word_embeddings=True),
    llama("SmolLM2 1.7B", (32, 32), 64, 130000, most=8192, tie_word_embeddings=True),
    llama("Llama 2 7B 64k (YaRN)", (32, 32), 128, most=65536, rope_scaling={
        "factor": 16.0, "original_max_position_embeddings": 4096, "rope_type": "yarn"}),
    llama("heads of 112, no model", (8, 2), 112, 500000.0),
    mistral("Mistral 7B v0.1, Zephyr", (32, 8), 128, 10000.0, window=4096),
    mistral("Mistral 7B v0.3", (32, 8), 128, 1e6),
    mistral("Mistral Nemo 12B", (32, 8), 128, 1e6, 1024000, hidden=640),
    mistral("Mistral Small 24B 2501", (32, 8), 128, 1e8, hidden=640),
    mistral("Ministral 8B", (32, 8), 128, 1e8, window=32768, hidden=512),
    mistral("Codestral 22B", (48, 8), 128, 1e6),
    mistral("H2O Danube2 1.8B", (32, 8), 80, 10000, 8192),
    qwen2("Qwen1.5 0.5B", (16, 16), 64, tied=True),
    qwen2("Qwen2 7B", (28, 4), 128, vocab=324),
    qwen2("Qwen2.5 0.5B", (14, 2), 64, tied=True),
    qwen2("Qwen2.5 1.5B", (12, 2), 128, tied=True),
    qwen2("Qwen2.5 3B", (16, 2), 128, tied=True),
    qwen2("QwQ 32B", (40, 8), 128, rms_norm_eps=1e-5, max_position_embeddings=131072),
    qwen2("DeepSeek R1 Distill Qwen 1.5B", (12, 2), 128, 10000, max_position_embeddings=131072),
    qwen2("Qwen2.5 7B with YaRN", (28, 4), 128, rope_scaling={
        "factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"}),
    qwen3("Qwen3 0.6B", (16, 8), 128, True),
    qwen3("Qwen3 4B 2507", (32, 8), 320, True, 5000000, max_position_embeddings=262144),
    qwen3("Qwen3 8B", (32, 8), 512),
    qwen3("Qwen3 14B", (40, 8), 640),
    qwen3("Qwen3 8B with YaRN", (32, 8), 512, max_position_embeddings=131072, rope_scaling={
        "factor": 4.0, "original_max_position_embeddings": 32768, "rope_type": "yarn"}),
    phi3("Phi-3 mini 4k", (32, 32), 96, window=2047),
    phi3("Phi-3 mini 128k", (32, 32), 96, 131072, window=262144,
         rope_scaling={**factors(96), "type": "longrope"}),
    phi3("Phi-3 mini 128k, behind 4,096", (32, 32), 96, 131072, window=262144,
         rope_scaling={**factors(96), "type": "longrope"}, prompts=(4100,)),
    phi3("Phi-3 medium 128k", (40, 10), 128, 131072, window=131072,
         rope_scaling={**factors(128), "type": "su"}, build={"rope_scaling": {
             **factors(128), "type": "longrope"}}, read=True),
    phi3("Phi-4 14B", (40, 10), 128, 16384, 16384, 250000, rope_scaling=None),
    phi3("Phi-4 reasoning plus", (40, 10), 128, 32768, 32768, 500000, rope_scaling=None),
    mistral("Mistral Small 3.1 24B", (32, 8), 128, 1e9, 131072, hidden=640, wrap=MISTRAL3,
            names=NAMES_OF_LLAVA, build={"tie_word_embeddings": False}),
    mistral("Mistral Small 3.1 24B, saved again", (32, 8), 128, 1e9, 131072, hidden=640,
            wrap=MISTRAL3, names={}, build={"tie_word_embeddings": False}),
    mistral("Pixtral 12B", (32, 8), 128, 1e9, 1024000, hidden=640, wrap=PIXTRAL_12B,
            names=NAMES_OF_LLAVA),
    llama("LLaVA 1.5 7B", (32, 32), 128, wrap=LLAVA, names=NAMES_OF_LLAVA, vocab=328),
    mistral("LLaVA-NeXT Mistral 7B", (32, 8), 128, 1e6, wrap=LLAVA_NEXT, names=NAMES_OF_LLAVA),
    llama("ViP-LLaVA 7B", (32, 32), 128, wrap=VIPLLAVA, names=NAMES_OF_LLAVA),
    qwen2("LLaVA-OneVision 0.5B", (14, 2), 64, tied=True, wrap=ONEVISION, names=NAMES_OF_LLAVA),
    qwen2("InternVL3 1B", (14, 2), 64, wrap=INTERNVL3, names=NAMES_OF_LLAVA,
          build={"tie_word_embeddings": False}),
    qwen3("InternVL3.5 8B", (32, 8), 512, wrap=INTERNVL3, names=NAMES_OF_LLAVA,
          build={"tie_word_embeddings": False}),
    llama("Idefics3 8B", (32, 8), 128, 500000.0, most=131072, rope_scaling=llama3(8.0),
          wrap=IDEFICS3, names={}),
    llama("SmolVLM2 2.2B", (32, 32), 64, 130000, most=8192, wrap=SMOLVLM, names={}),
    exaone("EXAONE 3.0 7.8B", (32, 8), 128, False, scaled=False),
    exaone("EXAONE 3.5 2.4B", (32, 8), 80, True, hidden=320),
    exaone("EXAONE 3.5 32B", (40, 8), 128, False, hidden=640),
    shape("InternLM3 8B", "internlm3", (32, 2), 128, 256, qkv_bias=False, bias=False,
          rms_norm_eps=1e-5, rope_theta=50000000, max_position_embeddings=32768,
          rope_scaling={"factor": 6.0, "rope_type": "dynamic"}, tie_word_embeddings=False),
    shape("Seed-OSS 36B", "seed_oss", (80, 8), 128, 320, attention_bias=True,
          attention_out_bias=False, mlp_bias=False, attention_dropout=0.1, residual_dropout=0.1,
          rms_norm_eps=1e-6, rope_theta=10000000.0, rope_scaling={"rope_type": "default"},
          max_position_embeddings=524288, tie_word_embeddings=False),
    shape("ERNIE 4.5 0.3B", "ernie4_5", (16, 2), 128, 256, use_bias=False, rms_norm_eps=1e-5,
          rope_theta=500000, max_position_embeddings=131072, tie_word_embeddings=True),
    shape("Helium 1 preview 2B", "helium", (20, 20), 128, 256, attention_bias=False, mlp_bias=False,
          rms_norm_eps=1e-8, rope_theta=100000.0, max_position_embeddings=4096,
          tie_word_embeddings=False),
    shape("Helium 1 2B", "helium", (16, 8), 128, 512, attention_bias=False, mlp_bias=False,
          rms_norm_eps=1e-8, rope_theta=20000.0, max_position_embeddings=4096,
          tie_word_embeddings=False),
    phi3("Phi-4 mini", (24, 8), 128, 131072, partial_rotary_factor=0.75, tie_word_embeddings=True,
         rope_scaling={**factors(96), "type": "longrope"}),
    shape("SmolLM3 3B", "smollm3", (16, 4), 128, rope_theta=5000000.0, rms_norm_eps=1e-6,
          no_rope_layers=[1, 0], no_rope_layer_interval=4, tie_word_embeddings=True,
          max_position_embeddings=65536, pad_token_id=0),
    shape("Granite 3.3 2B", "granite", (32, 8), 64, rope_theta=10000000.0, rms_norm_eps=1e-5,
          attention_multiplier=0.015625, embedding_multiplier=12.0, logits_scaling=8.0,
          residual_multiplier=0.22, tie_word_embeddings=True, pad_token_id=0),
    shape("OLMo 2 1B", "olmo2", (16, 16), 128, rope_theta=500000, rms_norm_eps=1e-6,
          pad_token_id=0),
    shape("Gemma 2 2B", "gemma2", (8, 4), 256, 256, rope_theta=10000.0, rms_norm_eps=1e-6,
          pad_token_id=0),
    shape("Command R 35B", "cohere", (64, 64), 128, rope_theta=8000000.0, layer_norm_eps=1e-5,
          logit_scale=0.0625, pad_token_id=0),
]
