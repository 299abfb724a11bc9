#!/usr/bin/env python3
"""
Compares the answers of megalith in f32 with those of Hugging Face Transformers for small random
checkpoints of the shapes of published models (shapes.py): greedy tokens and the log-probability of
each token of given ids. Needs transformers 5, torch and safetensors.

    tests/tools/families/compare.py [--megalith FILE] [--only WORD] >RESULT.json
    tests/tools/families/compare.py --table RESULT.json     the result as a table in Markdown

A shape that megalith rejects is a row with the reason. Exit code 1: an answer differs. Two best
logits closer than 1e-4 may swap: the reply is compared up to there, and the row says so.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers import AutoConfig

import answers
import make_fixtures
from shapes import SHAPES

SEED = 5
NEW = 32
PROMPTS = (1, 9, 60)
TEXTS = (2, 40, 120)
TOLERANCE = 1e-5  # of the likelihood, relative
BIASES = {0: "none", 3: "q, k, v", 7: "all"}  # by their number in a layer


def write_checkpoint(folder, row):
    options = {"names": row["names"]} if "names" in row else {}
    if "build" in row:
        options["build"] = row["build"]
    dtype = getattr(torch, row.get("dtype", "bfloat16"))
    make_fixtures.write(folder, row["config"], options, SEED, dtype)
    if row.get("read"):
        return make_fixtures.read_back(folder, row["config"], {"read": row["build"]})
    return answers.load(folder)


def ask(binary, verb, folder, *arguments):
    """The JSON object of a verb; None and the reason if megalith rejects the model."""
    command = [binary, verb, str(folder), *arguments, "--json", "--device", "cpu", "--dtype", "f32"]
    command += ["--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)
    if done.returncode:
        where = told.get("where", "").replace(str(folder) + "/", "")
        return None, f"{where}: {told.get('message', '')}"
    return told, ""


def compare_greedy(golden, reply):
    """(equal tokens, whether the first difference is at a near tie)"""
    for i, (wanted, got) in enumerate(zip(golden["output_ids"], reply)):
        if wanted != got:
            return i, golden["top_two_gap"][i] < answers.EPSILON
    return len(golden["output_ids"]), False


def compare_replies(binary, folder, model, row, vocab):
    equal = ties = 0
    for i, length in enumerate(row.get("prompts", PROMPTS)):
        golden = answers.greedy(model, answers.draw_ids(i, length, vocab), NEW)
        ids = ",".join(map(str, golden["prompt_ids"]))
        reply, reason = ask(
            binary, "run", folder, "--prompt-ids", ids, "-n", str(NEW), "--ignore-eos", "--quiet"
        )
        if not reply:
            return None, None, reason
        same, tie = compare_greedy(golden, reply["output_ids"])
        equal += NEW if tie else same
        ties += tie
    return equal, ties, ""


def compare_likelihood(binary, folder, model, row, vocab):
    """The largest relative difference of a text's likelihood, and the largest difference of a
    token's log-probability."""
    lengths = row.get("prompts", TEXTS)
    texts = [answers.draw_ids(100 + i, n, vocab) for i, n in enumerate(lengths)]
    golden = answers.likelihood(model, texts)["logprobs"]
    path = folder / "texts.json"
    path.write_text(json.dumps([{"ids": ids} for ids in texts]))
    told, reason = ask(binary, "score", folder, "--texts", str(path), "--quiet")
    if not told:
        return None, None, reason
    whole = each = 0.0
    for wanted, text in zip(golden, told["texts"]):
        got = text["logprobs"][1:]
        whole = max(whole, abs(sum(got) / sum(wanted) - 1))
        each = max([each] + [abs(a - b) for a, b in zip(wanted, got)])
    return whole, each, ""


def family_of(row):
    """The model_type, and the model_type of the wrapper."""
    outer = row["config"]["model_type"]
    return row["family"] if outer == row["family"] else f"{row['family']} in {outer}"


def compare(binary, row):
    """One row of the result."""
    out = {"family": family_of(row), "model": row["model"], "heads": row["heads"]}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = write_checkpoint(folder, row)
        text = model.config.get_text_config()
        rope = getattr(text, "rope_parameters", None) or {}
        out["rope"] = rope.get("rope_type", "default")
        out["hidden"], out["vocab"] = text.hidden_size, text.vocab_size
        out["tied"] = model.get_output_embeddings().weight is model.get_input_embeddings().weight
        out["biases"] = sum(
            1 for n, _ in model.named_parameters() if n.endswith("bias") and "layers.0." in n
            and "vision" not in n
        )
        out["tokens"] = NEW * len(row.get("prompts", PROMPTS))
        equal, ties, reason = compare_replies(binary, folder, model, row, text.vocab_size)
        if not reason:
            out["equal"], out["near_ties"] = equal, ties
            whole, each, reason = compare_likelihood(binary, folder, model, row, text.vocab_size)
        if not reason:
            out["nll_relative"] = float(f"{whole:.2g}")
            out["logprob_absolute"] = float(f"{each:.2g}")
    out["rejected"] = reason or None
    out["same"] = not reason and equal == out["tokens"] and whole <= TOLERANCE
    return out


def short_reason(reason):
    """Without what is supported instead, and without the number of other reasons."""
    return reason.split(";")[0].split(" (and ")[0].removeprefix("config.json: ")


def table(rows):
    lines = [
        "| family | shape of | heads x size | rope | head | biases | greedy tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["rejected"]:
            end = f"| rejected: {short_reason(row['rejected'])} |"
        else:
            tie = " (near tie)" if row["near_ties"] else ""
            end = f"| {row['equal']} of {row['tokens']}{tie} |"
        tied = "tied" if row["tied"] else "own"
        lines.append(
            f"| {row['family']} | {row['model']} | {row['heads']} | {row['rope']} | {tied} "
            f"| {BIASES[row['biases']]} {end}"
        )
    return "\n".join(lines) + "\n"


def main():
    root = pathlib.Path(__file__).parents[3]
    parser = argparse.ArgumentParser()
    parser.add_argument("--megalith", default=str(root / "build" / "megalith"))
    parser.add_argument("--table")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.table:
        result = json.loads(pathlib.Path(options.table).read_text())
        print(table(result.get("result", result)["rows"]), end="")
        return 0
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    rows = []
    for row in SHAPES:
        if options.only.lower() not in f"{row['family']} {row['model']}".lower():
            continue
        rows.append(compare(options.megalith, row))
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    supported = [row for row in rows if not row["rejected"]]
    result = {
        "schema": "megalith.families/1",
        **answers.versions(),
        "shapes": len(rows),
        "supported": len(supported),
        "same": sum(row["same"] for row in supported),
        "largest_nll_relative": max([row["nll_relative"] for row in supported] + [0]),
        "rows": rows,
    }
    print(json.dumps(result))
    return 0 if result["same"] == result["supported"] else 1


if __name__ == "__main__":
    sys.exit(main())
