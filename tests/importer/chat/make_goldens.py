#!/usr/bin/env python3
"""
Makes the goldens of the chat templates: what Hugging Face's own rendering gives for constructs.json
and for each template in templates/ with each conversation of conversations.json. Needs transformers
(which brings Jinja2); the tests read the files that this wrote and need neither.

    tests/importer/chat/make_goldens.py

Templates from elsewhere are tried in the same way: the files *.jinja of a folder, with every
conversation, become cases for the test to compare.

    tests/importer/chat/make_goldens.py FOLDER CASES.json
    build/tests/importer/chat/chat_goldens CASES.json
"""
import datetime
import json
import os
import pathlib
import sys

os.environ["TZ"] = "UTC"
from transformers.utils import chat_template_utils  # noqa: E402

HERE = pathlib.Path(__file__).parent
EPOCH = 1700000000  # the tests set SOURCE_DATE_EPOCH to it


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2023, 11, 14, 22, 13, 20)


chat_template_utils.datetime = FixedTime


def render(template, variables):
    """The text, or why there is none. One that holds an address is another one each time."""
    try:
        text = chat_template_utils._compile_jinja_template(template).render(**variables)
        return {"error": "prints an address"} if " at 0x" in text else {"text": text}
    except Exception as error:  # whatever Jinja or Python says
        return {"error": f"{type(error).__name__}: {error}"}


def render_conversation(template, case):
    """As apply_chat_template: keys of messages that are null are left out."""
    messages = [{k: v for k, v in m.items() if v is not None} for m in case["messages"]]
    variables = {"bos_token": "<s>", "eos_token": "</s>", **case.get("args", {})}
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [messages], tools=case.get("tools"), chat_template=template,
            add_generation_prompt=case.get("add_generation_prompt", True), **variables)
        return {"text": texts[0]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def variables_of(case):
    """What a template sees of a conversation."""
    messages = [{k: v for k, v in m.items() if v is not None} for m in case["messages"]]
    return {"bos_token": "<s>", "eos_token": "</s>", "documents": None,
            "messages": chat_template_utils._alias_reasoning_fields(messages),
            "tools": case.get("tools"),
            "add_generation_prompt": case.get("add_generation_prompt", True),
            **case.get("args", {})}


def try_folder(folder, path):
    conversations = json.loads((HERE / "conversations.json").read_text(encoding="utf-8"))
    cases = []
    for file in sorted(pathlib.Path(folder).rglob("*.jinja")):
        template = file.read_text(encoding="utf-8")
        for case in conversations:
            variables = variables_of(case)
            cases.append({"name": f"{file}: {case['name']}", "template": template,
                          "variables": json.loads(json.dumps(variables)),
                          **render(template, variables)})
    write(path, cases)


def write(path, cases):
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    pathlib.Path(path).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    errors = sum("error" in case for case in cases)
    print(f"{path}: {len(cases)} cases, {errors} of them errors")


def main():
    constructs = json.loads((HERE / "constructs.json").read_text(encoding="utf-8"))
    write(HERE / "goldens" / "constructs.json", [{**case, **render(case["template"], case.get("variables", {}))}
                              for case in constructs])
    conversations = json.loads((HERE / "conversations.json").read_text(encoding="utf-8"))
    # As texts, so that numbers reach the library as they stand.
    write(HERE / "goldens" / "conversations.json", [{key: value if key == "name" else json.dumps(value)
                                  for key, value in case.items()} for case in conversations])
    cases = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = path.read_text(encoding="utf-8")
        for case in conversations:
            cases.append({"template": path.stem, "conversation": case["name"],
                          **render_conversation(template, case)})
    write(HERE / "goldens" / "families.json", cases)


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else try_folder(*sys.argv[1:])
