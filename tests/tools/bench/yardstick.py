#!/usr/bin/env python3
"""
What Hugging Face's own bf16 makes of a checkpoint's texts, as a yardstick for fidelity.c. Needs
transformers and torch.

    tests/tools/bench/yardstick.py MODEL >FILE

FILE has, for each of the model's val_texts.json, the token ids and, of the tokens behind the first:
the sum of KL(f32 || bf16) of the distributions that they are told from, and the sum of the absolute
differences of their negative log-likelihoods in f32 and in bf16, both in nats.
On a GPU where there is one; f32 without TF32.
"""
import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, __version__


def main():
    folder = pathlib.Path(sys.argv[1])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    tokenizer = AutoTokenizer.from_pretrained(folder)
    exact, rounded = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
        for dtype in (torch.float32, torch.bfloat16)
    )
    texts = []
    for text in json.loads((folder / "val_texts.json").read_text()):
        ids = tokenizer(text).input_ids
        given = torch.tensor([ids], device=device)
        with torch.no_grad():
            p, q = (
                torch.log_softmax(model(given).logits[0, :-1].double(), -1)
                for model in (exact, rounded)
            )
        told = given[0, 1:, None]
        nll, other = -p.gather(1, told), -q.gather(1, told)
        texts.append(
            {
                "ids": ids,
                "kl": (p.exp() * (p - q)).sum().item(),
                "error": (other - nll).abs().sum().item(),
            }
        )
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    with_ = f"transformers {__version__}, torch {torch.__version__}, {name}"
    print(json.dumps({"model": folder.name, "with": with_, "texts": texts}))


main()
