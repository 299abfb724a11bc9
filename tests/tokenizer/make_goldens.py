#!/usr/bin/env python3
"""
Makes goldens/declared.json: ids and texts that Transformers gives for folders in which
tokenizer_config.json, special_tokens_map.json, added_tokens.json or config.json change what
tokenizer.json defines. The script needs transformers 5. The tests only read goldens/declared.json.

    tests/tokenizer/make_goldens.py

An entry is {"base": folder in tests/models, "files": the files beside its tokenizer.json, "encode":
[...], "decode": [...]}. With "llama", tokenizer.json has the parts "llama" of the whole file.
"""
import json
import os
import pathlib
import random
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import transformers  # noqa: E402

HERE = pathlib.Path(__file__).parent
MODELS = HERE.parent / "models"
BYTES, SPACES = "tales-5m", "tokenizers/metaspace"
LLAMA = {  # the parts of a Llama 2 tokenizer
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "pre_tokenizer": None,
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}
TEXTS = ["a<new>b", "a <new> b", "Once<b>there <a>was<c> hi", " hi", "hi</s>there", "hi </s> there <s>x",
         "<new><a> the <b>\n", "xthex the", "<|eot_id|> a <|pad|>", "é<A> ABC", "<tool>1</tool>", ""]


def token(content, **flags):
    return {"content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
            "special": True, **flags}


def added(content, **flags):
    return {"__type": "AddedToken", **token(content, **flags)}


def named(content, **flags):
    """As special_tokens_map.json has it: without the flag `special`."""
    return {key: value for key, value in token(content, **flags).items() if key != "special"}


def config(**keys):
    return {"tokenizer_config.json": keys}


def decoder(*tokens, start=913, **keys):
    return config(added_tokens_decoder={str(start + i): t for i, t in enumerate(tokens)}, **keys)


def by_hand():
    yield decoder(token("<new>"))
    yield decoder(token("<new>", special=False, normalized=True), token("<b>", lstrip=True),
                  token("<a>", rstrip=True), token("the", single_word=True))
    yield decoder({"content": "<new>"}, {"content": "<b>", "special": True}, {"content": "<A>", "__type": "AddedToken"})
    yield decoder(token("<new>"), token("<b>"), start=5000)  # the next free ids all the same
    yield config(added_tokens_decoder={"990": token("<new>"), "950": token("<b>"), "-3": token("<a>"),
                                       " 7 ": token("<c>")})
    # flags of tokens that tokenizer.json has
    yield decoder(token("<|eot_id|>", lstrip=True, rstrip=True), token("<|pad|>", special=False), start=911)
    yield decoder(token("<|begin_of_text|>", single_word=True, normalized=True), start=909)
    yield config(bos_token="<new>", eos_token="<|eot_id|>", unk_token=None)
    yield config(bos_token=added("<new>", rstrip=True), pad_token=added("<b>", special=False), image_token="<a>")
    yield config(bos_token="the", foo_token="<new>", foo_token_id=5, add_bos_token=True)
    yield config(additional_special_tokens=["<new>", added("<b>", lstrip=True)])
    yield config(extra_special_tokens=["<new>", added("<b>", special=False, normalized=True)])
    yield config(extra_special_tokens={"image_token": "<new>", "x": added("<b>")}, additional_special_tokens=["<a>"])
    yield config(extra_special_tokens=["<a>"], additional_special_tokens=["<new>"])
    yield config(extra_special_tokens=[], additional_special_tokens=["<new>"])
    yield config(model_specific_special_tokens={"x_token": "<new>"})
    yield decoder(token("<new>", special=False), bos_token="<new>", extra_special_tokens=["<new>", "<b>"])
    # the older files, and that they are not read beside added_tokens_decoder
    yield {"added_tokens.json": {"<new>": 920, "<b>": 914, "<a>": 913}}
    yield {"added_tokens.json": {"<new>": 913, "<|eot_id|>": 911}, "special_tokens_map.json": {"eos_token": "<new>"}}
    yield {"special_tokens_map.json": {"bos_token": "<new>", "eos_token": named("<b>", lstrip=True),
                                       "additional_special_tokens": ["<a>"]}}
    yield {"special_tokens_map.json": {"extra_special_tokens": ["<new>", named("<b>", rstrip=True)]},
           **config(extra_special_tokens=["<a>"], bos_token="<c>")}
    yield {"special_tokens_map.json": {"extra_special_tokens": {"x_token": "<new>"}, "bos_token": "<b>"},
           **config(extra_special_tokens=["<a>"], bos_token="<c>")}
    yield {"special_tokens_map.json": {"bos_token": "<new>"}, "added_tokens.json": {"<b>": 914, "<new>": 913},
           **config(additional_special_tokens=["<b>"])}
    yield {"special_tokens_map.json": {"bos_token": "<new>"}, "added_tokens.json": {"<b>": 913},
           **decoder(token("<a>"))}
    yield {"special_tokens_map.json": {"bos_token": "<new>"}, "added_tokens.json": {"<b>": 913},
           **config(added_tokens_decoder={})}


def classes():
    for model_type in ("llama", "mistral", "qwen3", "phi3", None):
        for name in ("LlamaTokenizer", "LlamaTokenizerFast", "PreTrainedTokenizerFast"):
            for keys in ({}, {"legacy": True}, {"legacy": None}, {"add_prefix_space": False}):
                if keys and model_type != "llama":
                    continue
                yield {**({"config.json": {"model_type": model_type}} if model_type else {}),
                       **config(tokenizer_class=name, **keys)}
    yield {"config.json": {"model_type": "llama", "tokenizer_class": "LlamaTokenizer"}}
    yield {"config.json": {"model_type": "llama"},
           **decoder(token("<new>", rstrip=True), tokenizer_class="LlamaTokenizer", legacy=False, bos_token=None)}
    yield {"config.json": {"model_type": "llama"}, "added_tokens.json": {"<new>": 4000},
           **config(tokenizer_class="LlamaTokenizer", unk_token="<b>")}


def by_chance(r):
    names = ["<a>", "<b>", "<c>", "<new>", "<A>", "the", " was", "x", "</s>", "<unk>", "<|pad|>", "<|eot_id|>", "é"]
    keys = ["bos_token", "eos_token", "unk_token", "pad_token", "image_token"]

    def flags():
        return {key: r.random() < .5 for key in ("lstrip", "rstrip", "single_word", "normalized") if r.random() < .6}

    def some(make, most):
        return [make() for _ in range(r.randrange(most))]

    def value():
        return r.choice([r.choice(names), {"__type": "AddedToken", "content": r.choice(names), **flags(),
                                           "special": r.random() < .5}])
    files, keys_of_config = {}, {}
    if r.random() < .4:
        keys_of_config["added_tokens_decoder"] = {
            str(r.randrange(2000)): {"content": r.choice(names), **flags(), "special": r.random() < .5}
            for _ in range(r.randrange(6))}
    for key in r.sample(keys, r.randrange(4)):
        keys_of_config[key] = value()
    if r.random() < .3:
        keys_of_config["extra_special_tokens"] = r.choice([some(value, 4), {"q": value(), "image_token": value()}])
    if r.random() < .3:
        keys_of_config["additional_special_tokens"] = some(value, 4)
    if r.random() < .5:
        keys_of_config["tokenizer_class"] = "LlamaTokenizer"
    if r.random() < .4:
        files["special_tokens_map.json"] = {key: r.choice([r.choice(names), {"content": r.choice(names), **flags()}])
                                            for key in r.sample(keys, r.randrange(4))}
    if r.random() < .4:
        files["added_tokens.json"] = {name: r.randrange(2000) for name in r.sample(names, r.randrange(5))}
    return {"config.json": {"model_type": "llama"}, "tokenizer_config.json": keys_of_config, **files}


def load(base, llama, files):
    with tempfile.TemporaryDirectory() as folder:
        own = json.loads((MODELS / base / "tokenizer.json").read_text(encoding="utf-8"))
        for name, value in {"tokenizer.json": {**own, **(LLAMA if llama else {})}, **files}.items():
            (pathlib.Path(folder) / name).write_text(json.dumps(value), encoding="utf-8")
        return transformers.AutoTokenizer.from_pretrained(folder)


def entry(base, llama, files):
    made = {"base": base, "llama": llama, "files": files, "encode": [], "decode": []}
    tokenizer = load(base, llama, files)
    everything = []
    for text in TEXTS:
        for special in (True, False):
            ids = tokenizer.encode(text, add_special_tokens=special)
            if special or text == TEXTS[0]:
                made["encode"].append({"text": text, "special": special, "ids": ids})
        everything += ids
    for skip in (True, False):
        text = tokenizer.decode(everything, skip_special_tokens=skip)
        made["decode"].append({"ids": everything, "skip_special": skip, "text": text})
    return made


def main():
    r = random.Random(1)
    transformers.logging.set_verbosity_error()
    entries = [entry(BYTES, False, files) for files in by_hand()]
    entries += [entry(SPACES, True, files) for files in classes()]
    llama = {"config.json": {"model_type": "llama"}, **config(tokenizer_class="LlamaTokenizer")}
    entries.append(entry(BYTES, False, llama))
    entries += [entry(*r.choice([(BYTES, False), (SPACES, True)]), by_chance(r)) for _ in range(40)]
    lines = [json.dumps(made) for made in entries]
    (HERE / "goldens" / "declared.json").write_text(
        '{"source": "transformers %s", "llama": %s, "tokenizers": [\n%s\n]}\n'
        % (transformers.__version__, json.dumps(LLAMA), ",\n".join(lines)), encoding="utf-8")


main()
