#!/usr/bin/env python3
"""Makes tests/models/quantized/library: small checkpoints that compressed-tensors itself wrote.

    pip install compressed-tensors==0.20.1 torch safetensors
    make_fixtures.py OUT

Each folder has one layer (hidden 64, ffn 96, vocabulary 64) with random weights, quantized by the
library in one layout, and decompressed.json: the SHA-256 of the f32 numbers of each matrix, as the
library decompresses them with its scales converted to f32. The same script gives the same bytes.
"""

import hashlib
import json
import pathlib
import sys

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import (
    QuantizationArgs,
    QuantizationConfig,
    QuantizationScheme,
    QuantizationStatus,
    preset_name_to_scheme,
)
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file

HIDDEN, FFN, KV, VOCAB = 64, 96, 32, 64
MATRICES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (KV, HIDDEN),
    "self_attn.v_proj": (KV, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (FFN, HIDDEN),
    "mlp.up_proj": (FFN, HIDDEN),
    "mlp.down_proj": (HIDDEN, FFN),
}


def args(**keys):
    return QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**keys))


# folder: (scheme, layout, dtype of the scales)
FIXTURES = {
    "int8-row": (preset_name_to_scheme("W8A8", ["Linear"]), "int-quantized", torch.bfloat16),
    "int8-row-asymmetric": (
        args(num_bits=8, type="int", strategy="channel", symmetric=False),
        "int-quantized",
        torch.float32,
    ),
    "fp8-row": (preset_name_to_scheme("FP8_DYNAMIC", ["Linear"]), "float-quantized", torch.bfloat16),
    "fp8-tensor": (preset_name_to_scheme("FP8", ["Linear"]), "float-quantized", torch.float16),
    "fp8-block": (
        args(num_bits=8, type="float", strategy="block", block_structure=[48, 48]),
        "naive-quantized",
        torch.float32,
    ),
    "int4-group": (
        args(num_bits=4, type="int", strategy="group", group_size=32),
        "pack-quantized",
        torch.bfloat16,
    ),
    "int4-group-asymmetric": (
        args(num_bits=4, type="int", strategy="group", group_size=32, symmetric=False),
        "pack-quantized",
        torch.float16,
    ),
}


def least_and_most(weight, weights):
    """The range of the weights that share a scale, in the shape of the scales."""
    strategy = str(getattr(weights.strategy, "value", weights.strategy))
    if strategy == "tensor":
        return weight.min().reshape(1), weight.max().reshape(1)
    if strategy == "channel":
        return weight.amin(1, keepdim=True), weight.amax(1, keepdim=True)
    if strategy == "group":
        parts = weight.reshape(weight.shape[0], -1, weights.group_size)
        return parts.amin(2), parts.amax(2)
    height, width = weights.block_structure
    rows, columns = -(-weight.shape[0] // height), -(-weight.shape[1] // width)
    parts = [
        [weight[r * height : (r + 1) * height, c * width : (c + 1) * width] for c in range(columns)]
        for r in range(rows)
    ]
    return (
        torch.tensor([[float(p.min()) for p in row] for row in parts]),
        torch.tensor([[float(p.max()) for p in row] for row in parts]),
    )


def quantize(weight, scheme, layout, dtype):
    compressor = BaseCompressor.get_value_from_registry(layout)
    scale, zero = calculate_qparams(*least_and_most(weight, scheme.weights), scheme.weights)
    state = {"weight": weight, "weight_scale": scale.to(dtype).float(), "weight_zero_point": zero}
    stored = compressor.compress(state, scheme)
    number = compressor.decompress(dict(stored), scheme)["weight"].float().contiguous()
    stored["weight_scale"] = stored["weight_scale"].to(dtype)
    return stored, number


def make(folder, scheme, layout, dtype):
    generator = torch.Generator().manual_seed(len(folder.name))
    draw = lambda *shape: torch.randn(*shape, generator=generator) * shape[-1] ** -0.5
    tensors = {
        "model.embed_tokens.weight": draw(VOCAB, HIDDEN).bfloat16(),
        "model.norm.weight": torch.ones(HIDDEN).bfloat16(),
        "model.layers.0.input_layernorm.weight": torch.ones(HIDDEN).bfloat16(),
        "model.layers.0.post_attention_layernorm.weight": torch.ones(HIDDEN).bfloat16(),
    }
    digests = {}
    for name, shape in MATRICES.items():
        stored, number = quantize(draw(*shape), scheme, layout, dtype)
        base = f"model.layers.0.{name}"
        digests[f"{base}.weight"] = hashlib.sha256(number.numpy().tobytes()).hexdigest()
        tensors.update({f"{base}.{key}": value.contiguous() for key, value in stored.items() if value is not None})
    quantization = QuantizationConfig(
        config_groups={"group_0": scheme},
        format=layout,
        quantization_status=QuantizationStatus.COMPRESSED,
        ignore=["lm_head"],
    ).model_dump(mode="json")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": VOCAB,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "eos_token_id": 2,
        "dtype": "bfloat16",
        "quantization_config": quantization,
    }
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "decompressed.json").write_text(json.dumps(digests, indent=1) + "\n")


def main():
    out = pathlib.Path(sys.argv[1])
    for name, (scheme, layout, dtype) in FIXTURES.items():
        make(out / name, scheme, layout, dtype)


if __name__ == "__main__":
    main()
