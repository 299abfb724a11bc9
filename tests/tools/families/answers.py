"""
Random checkpoints and the results of Hugging Face Transformers for them, for make_fixtures.py and
compare.py. Needs transformers and torch.
"""
import json
import pathlib

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

EPSILON = 1e-4  # two best logits closer than this: either token may be right


def build(config):
    """The model of a config, with weights of zero or one as its class leaves them, in f32."""
    for cls in (AutoModelForCausalLM, AutoModelForImageTextToText):
        if type(config) in cls._model_mapping.keys():
            return cls.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    raise ValueError(f"no model class: {config.model_type}; see AutoModelForCausalLM")


def fill(model, seed, dtype):
    """Random weights, rounded to dtype. Queries and keys are large enough that attention depends
    on positions; biases and norms differ from zero and one. A tied table does
    not favor the token that was read: the layers add more to the residual than it has."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            values = torch.randn(weight.shape, generator=random)
            if "norm" in name or ".ln_" in name:
                values = 1 + 0.2 * values
            elif weight.dim() == 1:
                values = 0.5 * values
            else:
                values = values * 1.3 / weight[0].numel() ** 0.5
            weight.copy_(values.to(dtype).float())


def load(folder):
    """A checkpoint in f32 as Transformers reads it; every tensor that it needs must be there."""
    config = AutoConfig.from_pretrained(folder)
    cls = next(
        cls
        for cls in (AutoModelForCausalLM, AutoModelForImageTextToText)
        if type(config) in cls._model_mapping.keys()
    )
    model, info = cls.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(kind):
            raise ValueError(f"{folder}: {kind}: {sorted(info[kind])[:4]}")
    return model.eval()


def logits_of(model, ids):
    """(len(ids), vocabulary): the logits after each token, read at once without a cache."""
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()


def greedy(model, prompt, count, ends=()):
    """One entry of golden.json's greedy[]."""
    ids, gaps, first, cache = list(prompt), [], None, None
    while len(ids) < len(prompt) + count:
        told = torch.tensor([ids if cache is None else ids[-1:]])
        with torch.no_grad():
            step = model(input_ids=told, cache=cache, use_cache=True, logits_to_keep=1)
        cache, last = step.cache, step.logits[0, -1].float()
        first = last if first is None else first
        best = torch.topk(last, 2)
        gaps.append(float(best.values[0] - best.values[1]))
        ids.append(int(best.indices[0]))
        if ids[-1] in ends:
            break
    return {
        "prompt_ids": list(prompt),
        "output_ids": ids[len(prompt) :],
        "last_logits_first16": [round(float(x), 6) for x in first[:16]],
        "top_two_gap": [round(x, 6) for x in gaps],
    }


def likelihood(model, texts):
    """golden.json's perplexity, with the ids of each text and the log-probability of each token
    behind the first."""
    told = []
    for ids in texts:
        p = torch.log_softmax(logits_of(model, ids)[:-1].double(), -1)
        told.append([float(x) for x in p.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]])
    tokens = sum(len(t) for t in told)
    nll = -sum(sum(t) for t in told)
    return {
        "texts": len(texts),
        "tokens": tokens,
        "nll": nll,
        "ppl": float(torch.tensor(nll / tokens).exp()),
        "ids": texts,
        "logprobs": [[round(x, 7) for x in t] for t in told],
    }


def draw_ids(seed, length, vocab):
    """Ids from 3 on: those below are often special."""
    random = torch.Generator().manual_seed(seed)
    return torch.randint(3, vocab, (length,), generator=random).tolist()


def versions():
    return {
        "dtype": "torch.float32",
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
    }


def write_json(path, value):
    """Lists of numbers on one line, everything else indented by one space."""

    def render(value, indent):
        pad = " " * (indent + 1)
        if isinstance(value, dict):
            inner = [f"{pad}{json.dumps(k)}: {render(v, indent + 1)}" for k, v in value.items()]
            return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}" if inner else "{}"
        if isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
            inner = [pad + render(v, indent + 1) for v in value]
            return "[\n" + ",\n".join(inner) + "\n" + " " * indent + "]"
        return json.dumps(value)

    pathlib.Path(path).write_text(render(value, 0) + "\n")
