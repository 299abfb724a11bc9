#!/usr/bin/env python3
"""
Makes processors.json: replies of tests/models/tales-5m under penalties and ways to sample, as
Hugging Face's own logits processors give them. Needs transformers and torch; the test reads the
file that this wrote and needs neither.

    tests/model/make_processors.py

A case is a prompt with random settings. Each token comes from a forward pass over prompt and reply
(f32), then RepetitionPenaltyLogitsProcessor, the presence and frequency penalties of OpenAI's API
documentation (Hugging Face has none), TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
and MinPLogitsWarper, in this order. What is left is drawn from by the number that Philox4x32-10
makes of seed and token (instructions/sample/philox.h), which goes through the shares in the order
of ids. A case in which logits that are off by NOISE could give another token is left out.
"""
import json
import pathlib
import random

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.generation import logits_process as hf

HERE = pathlib.Path(__file__).parent
CASES, NOISE, TRIALS, TOP = 200, 1e-3, 12, 3
MASK = 0xFFFFFFFF


def philox(counter, key):
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = ((second >> 32) ^ b ^ k0, second & MASK, (first >> 32) ^ d ^ k1, first & MASK)
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return a, b, c, d


def drawn_number(seed, token):
    words = philox((token, 0, 0, 0), (seed & MASK, seed >> 32))
    return (words[1] << 32 | words[0]) / 2**64


def process(case, made, logits):
    """The scores of a token that follows prompt and reply."""
    ids = torch.tensor([case["prompt"] + made])
    scores = logits[None].clone()
    if "repeat_penalty" in case:
        scores = hf.RepetitionPenaltyLogitsProcessor(case["repeat_penalty"])(ids, scores)
    counts = torch.bincount(torch.tensor(made, dtype=torch.long), minlength=scores.shape[1])
    scores = scores - counts * case.get("frequency_penalty", 0.0)
    scores = scores - (counts > 0) * case.get("presence_penalty", 0.0)
    if "temperature" not in case:
        return scores[0]
    warpers = [hf.TemperatureLogitsWarper(case["temperature"])]
    if "top_k" in case:
        warpers.append(hf.TopKLogitsWarper(case["top_k"]))
    if "top_p" in case:
        warpers.append(hf.TopPLogitsWarper(case["top_p"]))
    if "min_p" in case:
        warpers.append(hf.MinPLogitsWarper(case["min_p"]))
    for warper in warpers:
        scores = warper(ids, scores)
    return scores[0]


def choose(case, made, logits):
    scores = process(case, made, logits)
    if "temperature" not in case:
        return int(scores.argmax())
    shares = torch.softmax(scores.double(), dim=-1).cumsum(dim=-1)
    return int(torch.searchsorted(shares, drawn_number(case["seed"], len(made)), right=True))


def draw_settings(chance, number):
    case = {"seed": chance.getrandbits(53)}
    if number % 4 in (0, 3):
        low = chance.choice([.5, 1])
        case["repeat_penalty"] = round(chance.uniform(low, 2 * low), 3)
    if number % 4 in (1, 3):
        case["presence_penalty"] = round(chance.uniform(-2, 2), 3)
    if number % 8 in (1, 3, 5):
        case["frequency_penalty"] = round(chance.uniform(-2, 2), 3)
    if number % 4 == 2 or number % 3:
        case["temperature"] = round(chance.uniform(.5, 3), 3)
        case["min_p"] = round(chance.choice([.001, .01, .05, .2, .6]) * chance.uniform(.5, 1.5), 5)
        if chance.random() < .4:
            case["top_k"] = chance.randint(2, 60)
        if chance.random() < .4:
            case["top_p"] = round(chance.uniform(.5, .99), 3)
    return case


def draw_prompt(chance, number, texts, vocab):
    if number % 5 > 2:
        return [chance.randrange(vocab) for _ in range(chance.randint(1, 12))]
    text = chance.choice(texts)
    return text[:chance.randint(1, min(len(text), 40))]


@torch.no_grad()
def make_reply(case, length, model):
    """False where another token is nearly as likely."""
    made, likely = [], []
    for _ in range(length):
        logits = model(torch.tensor([case["prompt"] + made])).logits[0, -1]
        token = choose(case, made, logits)
        for _ in range(TRIALS):
            if choose(case, made, logits + NOISE * torch.randn_like(logits)) != token:
                return False
        raw = torch.log_softmax(logits.double(), dim=-1)
        best = raw.topk(TOP)
        likely.append({"logprob": round(float(raw[token]), 6),
                       "top": [round(float(x), 6) for x in best.values]})
        made.append(token)
    case["output_ids"], case["likely"] = made, likely
    return True


def main():
    torch.manual_seed(1)
    chance = random.Random(1)
    folder = HERE.parent / "models" / "tales-5m"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = json.loads((folder / "val_texts.json").read_text())
    texts = [tokenizer(text).input_ids for text in texts]
    cases = []
    while len(cases) < CASES:
        number = len(cases)
        case = draw_settings(chance, number)
        case["prompt"] = draw_prompt(chance, number, texts, model.config.vocab_size)
        if make_reply(case, chance.randint(1, 8), model):
            cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "processors.json").write_text(f"[\n{lines}\n]\n")
    print(f"{CASES} cases, {sum(len(case['output_ids']) for case in cases)} tokens")


if __name__ == "__main__":
    main()
