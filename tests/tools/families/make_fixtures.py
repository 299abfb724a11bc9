#!/usr/bin/env python3
"""
Makes the checkpoints of tests/models/families: config.json, model.safetensors with random bf16
weights, and golden.json with the answers of Hugging Face Transformers. Needs transformers 5, torch
and safetensors.

    tests/tools/families/make_fixtures.py [NAME...]

Answers come from the files as they are read back, in f32. The script takes the first seed whose
answers are telling (is_telling). If rope is scaled, plain rope must give another answer.
"""
import copy
import json
import pathlib
import sys

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

import answers
from fixtures import FIXTURES

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "families"
NEW = 40
GAP = 2e-3
VARIETY = 8  # tokens of a reply


def rename(folder, names):
    """Tensors under the names that the publisher gives them: the first prefix that fits."""
    path = folder / "model.safetensors"
    tensors = {}
    for name, tensor in load_file(path).items():
        prefix = next((p for p in names if name.startswith(p)), "")
        tensors[names.get(prefix, "") + name[len(prefix) :]] = tensor
    save_file(tensors, path, metadata={"format": "pt"})


def write(folder, given, options, seed, dtype=torch.bfloat16):
    """The files but for golden.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    config = folder / "config.json"
    answers.write_json(config, {**given, **options.get("build", {})})
    model = answers.build(AutoConfig.from_pretrained(folder))
    answers.fill(model, seed, dtype)
    model.to(dtype).save_pretrained(
        folder, save_original_format="names" not in options
    )
    (folder / "generation_config.json").unlink(missing_ok=True)
    if options.get("names"):
        rename(folder, options["names"])
    if "build" in options or not options.get("v5"):
        answers.write_json(config, given)


def read_back(folder, given, options):
    """The model of the files. "read": keys that Transformers needs and the publisher's config lacks."""
    config = folder / "config.json"
    answers.write_json(config, {**given, **options["read"]})
    model = answers.load(folder)
    answers.write_json(config, given)
    return model


def golden(model, lengths, texts, vocab, ends):
    return {
        **answers.versions(),
        "greedy": [
            answers.greedy(model, answers.draw_ids(i, n, vocab), NEW, ends)
            for i, n in enumerate(lengths)
        ],
        "perplexity": answers.likelihood(
            model, [answers.draw_ids(100 + i, n, vocab) for i, n in enumerate(texts)]
        ),
    }


def without_scaling(model):
    """The same model with plain rope."""
    plain = copy.deepcopy(model)
    for module in plain.modules():
        if hasattr(module, "inv_freq"):
            size = 2 * len(module.inv_freq)
            base = module.config.rope_parameters["rope_theta"]
            module.rope_type, module.attention_scaling = "default", 1.0
            module.inv_freq.copy_(1 / base ** (torch.arange(0, size, 2).float() / size))
    return plain


def check_rope(name, model, told):
    rope = getattr(model.config.get_text_config(), "rope_parameters")
    if rope["rope_type"] in ("default", "dynamic"):
        return
    plain = answers.likelihood(without_scaling(model), told["ids"])["nll"]
    if abs(plain / told["nll"] - 1) < 1e-3:
        raise ValueError(f"{name}: plain rope has the likelihood of {rope['rope_type']}")


def is_telling(answer):
    """No near ties, and replies that are neither short nor always the same token."""
    return all(
        min(g["top_two_gap"]) > GAP and len(set(g["output_ids"])) >= VARIETY
        for g in answer["greedy"]
    )


def make(name, given, options):
    folder = FOLDER / name
    for seed in range(1, 100):
        write(folder, given, options, seed)
        model = read_back(folder, given, options) if "read" in options else answers.load(folder)
        text = model.config.get_text_config()
        ends = {text.eos_token_id} if text.eos_token_id is not None else set()
        short = options.get("short")
        # Scaled rope is used after 64 positions.
        lengths = (short + 1, short + 6, short + 20) if short else (3, 12, 80)
        texts = (100, 80) if short else (100, 30)
        value = {"fp32": golden(model, lengths, texts, text.vocab_size, ends)}
        if short:
            value["fp32_short"] = golden(model, (3, 12, 20), (64, 30), text.vocab_size, ends)
        if all(is_telling(v) for v in value.values()):
            break
    else:
        raise ValueError(f"{name}: no seed gives telling answers")
    for v in value.values():
        check_rope(name, model, v["perplexity"])
    answers.write_json(folder / "golden.json", {"seed": seed, **value})
    with safe_open(folder / "model.safetensors", "pt") as file:
        names = sorted(file.keys())
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name:20} seed {seed:2}  {size:7} B  {len(names)} tensors: {names[0]}, ...")


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name in sys.argv[1:] or FIXTURES:
        make(name, *FIXTURES[name])


if __name__ == "__main__":
    main()
