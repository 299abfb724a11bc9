"""The Python package on the CPU machine and tests/models/tales-5m.

Where the package and the library are, and which way it was installed, is tests/python/run.sh's
affair. Every test has a minute; then all threads say where they are.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

import megalith
from megalith import Code, MegalithError
from megalith._launch import ROOM

MODELS = Path(os.environ.get("MGL_TEST_MODELS") or Path(__file__).parents[1] / "models")
TALES = MODELS / "tales-5m"
GOLDEN = json.loads((TALES / "golden.json").read_text(encoding="utf-8"))
STORY = GOLDEN["fp32"]["greedy"][0]


def open_model(name: str = "tales-5m", **options: object) -> megalith.Model:
    return megalith.Model(MODELS / name, device="cpu", threads=1, **options)


def count_threads() -> int:
    return sum(thread.name == "megalith" for thread in threading.enumerate())


def collect() -> None:
    """Collects cycles, which the collector may be doing on another thread."""
    deadline = time.monotonic() + 20
    gc.collect()
    while count_threads() and time.monotonic() < deadline:
        time.sleep(0.001)
        gc.collect()


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program of its own, of which nothing may be left after 30 s."""
    return subprocess.run(
        [sys.executable, "-c", program, str(TALES)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


class Case(unittest.TestCase):
    def setUp(self) -> None:
        faulthandler.dump_traceback_later(60, exit=True)

    def tearDown(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    def assert_refused(self, code: Code, says: str, call, *values, **named) -> MegalithError:
        with self.assertRaises(MegalithError) as caught:
            call(*values, **named)
        self.assertEqual(caught.exception.code, code)
        self.assertIn(says, str(caught.exception))
        return caught.exception


def make_words(folder: Path) -> None:
    """The weights of tales-5m with the tokenizer of words."""
    for file in (MODELS / "tales-5m").iterdir():
        if file.name == "config.json" or file.name.startswith("model"):
            (folder / file.name).symlink_to(file.resolve())
    words = MODELS / "tokenizers" / "words" / "tokenizer.json"
    (folder / "tokenizer.json").symlink_to(words.resolve())


class OneModel(Case):
    model: megalith.Model

    @classmethod
    def setUpClass(cls) -> None:
        cls.model = open_model()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.model.close()

    def assert_free(self) -> None:
        """No thread is left, and the model makes the reply that a fresh one makes."""
        self.assertEqual(count_threads(), 0)
        reply = self.model.generate(STORY["prompt"], max_tokens=8)
        list(reply)
        self.assertEqual(reply.ids, STORY["output_ids"][:8])


class Installed(Case):
    def test_version_is_the_library_s(self) -> None:
        self.assertEqual(megalith.__version__, megalith.library_version())

    @unittest.skipUnless(os.environ.get("MGL_INSTALLED") == "pip", "not installed by pip")
    def test_wheel_has_metadata_and_types(self) -> None:
        self.assertEqual(importlib.metadata.version("megalith"), megalith.__version__)
        metadata = importlib.metadata.metadata("megalith")
        self.assertEqual(metadata["Requires-Python"], ">=3.9")
        names = [str(file) for file in importlib.metadata.files("megalith") or []]
        self.assertIn("megalith/py.typed", names)

    def test_a_library_that_is_not_there(self) -> None:
        program = "import megalith; megalith.library_version()"
        done = run_python(program, MEGALITH_LIBRARY="/nonexistent/libmegalith.so")
        self.assertEqual(done.returncode, 1)
        self.assertIn("MegalithError: /nonexistent/libmegalith.so: cannot be loaded", done.stderr)

    def test_a_library_without_the_functions(self) -> None:
        program = "import ctypes.util, megalith; megalith.library_version()"
        done = run_python(program, MEGALITH_LIBRARY="libc.so.6")
        self.assertIn("libc.so.6: is older than this package: it has no mgl_", done.stderr)

    def test_a_library_beside_the_package(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "megalith"
            package.mkdir()
            for file in Path(megalith.__file__).parent.glob("*.py"):
                (package / file.name).write_bytes(file.read_bytes())
            (package / "libmegalith.so").symlink_to(os.environ["MEGALITH_LIBRARY"])
            program = "import megalith; print(megalith.__file__, megalith.library_version())"
            done = run_python(program, MEGALITH_LIBRARY="", PYTHONPATH=folder)
            said = f"{package}/__init__.py {megalith.__version__}\n"
            self.assertEqual(done.stdout, said, done.stderr)


class Tokens(OneModel):
    def test_ids_and_text_as_hugging_face(self) -> None:
        for one in GOLDEN["tokenizer"]:
            self.assertEqual(self.model.tokenize(one["text"]), one["ids"])
            self.assertEqual(self.model.detokenize(one["ids"]), one["decoded"])

    def test_special_tokens_are_left_out_on_request(self) -> None:
        self.assertEqual(self.model.tokenize("Once", special=False), [452])
        self.assertEqual(self.model.detokenize([909, 452]), "Once")
        text = self.model.detokenize([909, 452], skip_special=False)
        self.assertEqual(text, "<|begin_of_text|>Once")

    def test_pieces_are_whole_characters(self) -> None:
        text = "caf\u00e9 \U0001f98a \u4f60\u597d"
        ids = self.model.tokenize(text)
        pieces = list(self.model.detokenize_stream(ids))
        self.assertEqual("".join(pieces), text)
        self.assertNotIn("\ufffd", "".join(pieces))
        self.assertLess(len(pieces), len(ids))

    def test_a_cut_character_comes_at_the_end(self) -> None:
        ids = self.model.tokenize("\U0001f98a", special=False)
        self.assertEqual(list(self.model.detokenize_stream(ids[:-1])), ["\ufffd"])

    def test_a_reply_goes_on_behind_its_prompt(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            make_words(Path(folder))
            with megalith.Model(folder, device="cpu") as model:
                reply = model.generate("Hello", max_tokens=4)
                self.assertEqual(reply.text(), " gol net bat gum")
                self.assertEqual(model.detokenize(reply.ids), "gol net bat gum")
                pieces = model.detokenize_stream(reply.ids, prompt=reply.prompt_ids)
                self.assertEqual("".join(pieces), " gol net bat gum")
                reply = model.generate("Hello", max_tokens=4, stop=" net")
                self.assertEqual((reply.text(), reply.stop), (" gol", "stop"))
                replies = model.generate(["Hello", {"text": "Hello", "stop": " net"}], max_tokens=4)
                self.assertEqual([r.text() for r in replies], [" gol net bat gum", " gol"])

    def test_token_and_back(self) -> None:
        self.assertEqual(self.model.token_bytes(268), b" was")
        self.assertEqual(self.model.find_token(" was"), 268)
        self.assertEqual(self.model.find_token("<|end_of_text|>"), 910)
        self.assertIsNone(self.model.find_token("no such token"))
        ids = self.model.tokenize("\u00e9", special=False)
        self.assertEqual(b"".join(map(self.model.token_bytes, ids)), "\u00e9".encode())

    def test_facts(self) -> None:
        self.assertEqual(self.model.vocab_size, 913)
        self.assertEqual(self.model.end_ids, [910])
        self.assertEqual(self.model.capacity, 1024)
        self.assertEqual((self.model.device, self.model.dtype), ("cpu", "f32"))

    def test_ids_that_cannot_be(self) -> None:
        self.assert_refused(Code.BAD_INPUT, "outside the vocabulary", self.model.detokenize, [913])
        self.assert_refused(Code.BAD_INPUT, "32 bits", self.model.detokenize, [1 << 40])
        self.assert_refused(Code.USAGE, "token: is -1", self.model.token_bytes, -1)
        self.assert_refused(Code.USAGE, "token: is 180388626432", self.model.token_bytes, 42 << 32)


class Replies(OneModel):
    def test_a_top_p_of_zero_keeps_the_most_likely_token(self) -> None:
        greedy = self.model.generate("Once there was", max_tokens=8).text()
        for seed in range(4):
            for options in ({"top_p": 0}, {"top_p": 0.0, "temperature": 5.0}, {"top_p": 1e-60}):
                reply = self.model.generate("Once there was", max_tokens=8, seed=seed, **options)
                self.assertEqual(reply.text(), greedy)
        off = {"temperature": 3.0, "seed": 5, "max_tokens": 8}
        texts = {
            self.model.generate("Once there was", **off, **more).text()
            for more in ({}, {"top_p": None}, {"top_p": 1}, {"top_k": 0, "min_p": 0})
        }
        self.assertEqual(len(texts), 1)
        self.assertNotIn(greedy, texts)

    def test_greedy_reply_as_hugging_face(self) -> None:
        reply = self.model.generate(STORY["prompt"], max_tokens=64)
        text = "".join(reply)
        self.assertEqual(reply.prompt_ids, STORY["prompt_ids"])
        self.assertEqual(reply.ids, STORY["output_ids"])
        self.assertEqual(text, self.model.detokenize(reply.ids))
        self.assertIn(reply.stop, ("eos", "length"))
        self.assertGreater(reply.prefill_s + reply.decode_s, 0)

    def test_ids_are_a_prompt_too(self) -> None:
        by_text = self.model.generate("Once there was", max_tokens=9).text()
        ids = self.model.tokenize("Once there was")
        self.assertEqual(self.model.generate(iter(ids), max_tokens=9).text(), by_text)

    def test_sampling_depends_on_the_seed(self) -> None:
        first = self.model.generate("Once", max_tokens=12, temperature=1.5, seed=7).text()
        again = self.model.generate("Once", max_tokens=12, temperature=1.5, seed=7).text()
        other = self.model.generate("Once", max_tokens=12, temperature=1.5, seed=8).text()
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_a_stop_text_ends_it(self) -> None:
        whole = self.model.generate("Once there was", max_tokens=24).text()
        for stop in ("ill", ["never", "ill"], iter(["near", "ill"])):
            reply = self.model.generate("Once there was", max_tokens=24, stop=stop)
            text = reply.text()
            self.assertEqual(reply.stop, "stop")
            self.assertEqual(text, whole[: len(text)])
            self.assertIn(whole[len(text) :][:3], ("ill", "nea"))
            self.assertIn(whole[len(text) :][:3], self.model.detokenize(reply.ids))
        self.assert_refused(Code.BAD_INPUT, "is empty", self.read_until, "")
        self.assert_refused(Code.BAD_INPUT, "is not UTF-8", self.read_until, "\ud800")
        self.assert_refused(Code.USAGE, "zero byte", self.read_until, "a\0b")
        with self.assertRaisesRegex(TypeError, "a stop text is a str, not int"):
            self.model.generate("Once", stop=[1])

    def test_log_probabilities(self) -> None:
        reply = self.model.generate("Once there was", max_tokens=5, logprobs=3)
        self.assertIsNone(reply.logprobs)
        reply.text()
        scores = self.model.score(reply.prompt_ids + reply.ids)[-5:]
        self.assertEqual([[len(of) for of in reply.top], len(reply.logprobs)], [[3] * 5, 5])
        self.assertEqual([of[0][0] for of in reply.top], reply.ids)
        for one, other in zip(scores, reply.logprobs):
            self.assertAlmostEqual(one, other, places=4)
        plain = self.model.generate("Once", max_tokens=1)
        plain.text()
        self.assertIsNone(plain.top)
        refused = self.model.generate("Once", logprobs=21)
        self.assert_refused(Code.USAGE, "logprobs", next, refused)

    def read_until(self, stop: str) -> str:
        return self.model.generate("Once", max_tokens=2, stop=stop).text()

    def test_a_seed_is_drawn_and_told(self) -> None:
        reply = self.model.generate("Once", max_tokens=12, top_k=50)
        again = self.model.generate("Once", max_tokens=12, top_k=50, seed=reply.seed)
        self.assertNotEqual(reply.seed, 0)
        self.assertEqual(reply.text(), again.text())

    def test_scores(self) -> None:
        first, *rest = self.model.score("Once there was a small fox")
        self.assertIsNone(first)
        self.assertAlmostEqual(sum(rest), -6.2219, places=3)
        self.assertEqual(self.model.score([909]), [None])

    def test_a_reply_that_is_never_read_costs_nothing(self) -> None:
        reply = self.model.generate("Once", max_tokens=1000)
        self.assertEqual(count_threads(), 0)
        self.assertIsNone(reply.stop)
        del reply
        self.assert_free()

    def test_what_is_refused(self) -> None:
        generate = self.model.generate
        self.assert_refused(Code.USAGE, "max_tokens: is 0", generate, "a", max_tokens=0)
        self.assert_refused(Code.USAGE, "seed: is -1", generate, "a", seed=-1)
        self.assert_refused(Code.USAGE, "top_p", next, generate("a", top_p=2))
        self.assert_refused(Code.USAGE, "min_p", next, generate("a", min_p=2))
        self.assert_refused(Code.USAGE, "temperature", next, generate("a", temperature=-1))
        self.assert_refused(Code.BAD_INPUT, "too many tokens: 1025", next, generate([1] * 1025))
        self.assert_refused(Code.BAD_INPUT, "contains no tokens", next, generate([]))
        error = self.assert_refused(Code.BAD_INPUT, "913", next, generate([1, 913]))
        self.assertEqual(error.where, "prompt")
        self.assert_free()


class LeftHalfWay(OneModel):
    def begin(self) -> megalith.Reply:
        """A reply that would be long, with its first piece read."""
        reply = self.model.generate("Once there was", max_tokens=1000, ignore_eos=True)
        self.assertTrue(next(reply))
        return reply

    def test_by_close(self) -> None:
        reply = self.begin()
        reply.close()
        self.assertEqual(reply.stop, "interrupted")
        self.assertEqual(len(reply.ids), 1)
        with self.assertRaises(StopIteration):
            next(reply)
        reply.close()
        self.assert_free()

    def test_by_a_break(self) -> None:
        for _ in self.model.generate("Once there was", max_tokens=1000, ignore_eos=True):
            break
        self.assert_free()

    def test_by_an_error_in_a_with(self) -> None:
        with self.assertRaises(ZeroDivisionError), self.begin():
            raise ZeroDivisionError
        self.assert_free()

    def test_in_a_cycle(self) -> None:
        holder: list[object] = [self.begin()]
        holder.append(holder)
        del holder
        collect()
        self.assert_free()

    def test_while_the_queue_is_full(self) -> None:
        reply = self.begin()
        channel = reply._launch._channel
        deadline = time.monotonic() + 20
        while len(channel._tokens) < ROOM and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        self.assertEqual(len(channel._tokens), ROOM)
        reply.close()
        self.assert_free()

    def test_a_slow_reader_gets_all(self) -> None:
        ids = []
        reply = self.model.generate("Once there was", max_tokens=ROOM + 40, ignore_eos=True)
        for _ in reply:
            if not ids:
                time.sleep(0.3)
            ids.append(len(reply.ids))
        self.assertEqual(len(reply.ids), ROOM + 40)
        self.assertEqual(reply.stop, "length")

    def test_while_the_prompt_is_read(self) -> None:
        """Before the first token nothing is asked of the queue: the switch ends the launch."""
        reply = self.model.generate([909] + [40] * 1000, max_tokens=4)
        channel = reply._launch._channel
        put = channel.put

        def put_late(token: int) -> bool:  # called where the prompt was read too soon
            while channel._open:
                time.sleep(0.001)
            return put(token)

        reader = threading.Thread(target=lambda: list(reply))
        with unittest.mock.patch.object(channel, "put", put_late):
            reader.start()
            while not reply._launch._thread:
                time.sleep(0.001)
            reply._launch.end()
            reader.join()
        self.assertEqual(reply.ids, [])
        self.assertEqual(reply.stop, "interrupted")
        self.assert_free()

    def test_by_the_end_of_the_program(self) -> None:
        program = (
            "import megalith, sys\n"
            "model = megalith.Model(sys.argv[1], device='cpu')\n"
            "reply = model.generate('Once there was', max_tokens=1000, ignore_eos=True)\n"
            "print(next(reply))\n"
        )
        done = run_python(program)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, " a\n", ""))

    def test_another_reply_meanwhile_is_refused(self) -> None:
        reply = self.begin()
        other = self.model.generate("Once")
        self.assert_refused(Code.USAGE, "one at a time", next, other)
        self.assert_refused(Code.USAGE, "one at a time", self.model.score, "Once")
        reply.close()
        self.assert_free()


class Example(Case):
    def test_the_example_streams(self) -> None:
        example = Path(__file__).parents[2] / "examples" / "generate.py"
        done = subprocess.run(
            [sys.executable, example, TALES, "Once there was a small fox named"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        text, end = done.stdout.split("\n", 1)  # whatever the device says
        self.assertGreater(len(text), 40, done.stderr)
        self.assertEqual(end, "24 tokens, length\n")


class Models(Case):
    def test_two_models_and_two_threads(self) -> None:
        names = ("tales-5m", "qwen2")
        models = [open_model(name) for name in names]
        prompts = [[909, 452, 449, 268], [5, 6, 7, 8]]

        def tell(index: int) -> list[list[int]]:
            replies = []
            for seed in (1, 2, 3):
                reply = models[index].generate(prompts[index], max_tokens=40, seed=seed)
                list(reply)
                replies.append(reply.ids)
            return replies

        alone = [tell(0), tell(1)]
        together: list[object] = [None, None]

        def work(index: int) -> None:
            together[index] = tell(index)

        workers = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(together, alone)
        for model in models:
            model.close()

    def test_two_replies_of_two_models_turn_by_turn(self) -> None:
        with open_model() as one, open_model() as two:
            pairs = zip(one.generate("Once", max_tokens=20), two.generate("Once", max_tokens=20))
            self.assertTrue(all(a == b for a, b in pairs))

    def test_a_closed_model(self) -> None:
        model = open_model()
        reply = model.generate("Once there was", max_tokens=1000, ignore_eos=True)
        next(reply)
        model.close()
        model.close()
        self.assertEqual(reply.stop, "interrupted")
        self.assertEqual(count_threads(), 0)
        self.assert_refused(Code.USAGE, "was closed", model.generate, "Once")
        self.assert_refused(Code.USAGE, "was closed", model.score, "Once")
        self.assertEqual(model.tokenize("Once"), [909, 452])

    def test_a_model_that_is_forgotten_with_its_reply(self) -> None:
        next(open_model().generate("Once there was", max_tokens=1000, ignore_eos=True))
        collect()
        self.assertEqual(count_threads(), 0)

    def test_a_reply_keeps_its_model(self) -> None:
        reply = open_model().generate(STORY["prompt"], max_tokens=8)
        gc.collect()
        list(reply)
        self.assertEqual(reply.ids, STORY["output_ids"][:8])

    def test_capacity_is_kept(self) -> None:
        with open_model(capacity=10) as model:
            self.assertEqual(model.capacity, 10)
            reply = model.generate("Once there was", max_tokens=100)
            list(reply)
            self.assertEqual((len(reply.ids), reply.stop), (6, "length"))

    def test_a_model_for_long_prompts_replies_alike(self) -> None:
        with open_model() as model, open_model(prompt=500) as other:
            replies = [m.generate("Once there was", max_tokens=8).text() for m in (model, other)]
            self.assertEqual(*replies)

    def test_models_that_cannot_be_opened(self) -> None:
        error = self.assert_refused(Code.BAD_INPUT, "nonexistent", megalith.Model, "/nonexistent")
        self.assertTrue(error.message)
        self.assert_refused(Code.USAGE, "unknown device", megalith.Model, TALES, device="tpu")
        self.assert_refused(Code.USAGE, "capacity: is -1", megalith.Model, TALES, capacity=-1)
        self.assert_refused(Code.USAGE, "prompt: is -1", megalith.Model, TALES, prompt=-1)
        self.assert_refused(Code.USAGE, "zero byte", megalith.Model, "a\0b")

    def test_a_model_without_a_tokenizer(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for file in (MODELS / "qwen2").iterdir():
                if not file.name.startswith("tokenizer"):
                    (Path(folder) / file.name).symlink_to(file)
            with megalith.Model(folder, device="cpu") as model:
                self.assertEqual(len(model.score([1, 2, 3])), 3)
                self.assert_refused(Code.BAD_INPUT, "tokenizer.json", model.tokenize, "a")
                self.assert_refused(Code.BAD_INPUT, "tokenizer.json", next, model.generate([1]))
            unigram = '{"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 0}}'
            (Path(folder) / "tokenizer.json").write_text(unigram, encoding="utf-8")
            with megalith.Model(folder, device="cpu") as model:
                self.assertEqual(len(model.score([1, 2, 3])), 3)
                self.assert_refused(Code.BAD_INPUT, "supported: BPE", model.tokenize, "a")

    def test_tokens_of_tokenizer_config(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for file in (MODELS / "qwen2").iterdir():
                if file.name != "tokenizer_config.json":
                    (Path(folder) / file.name).symlink_to(file)
            config = '{"added_tokens_decoder": {"950": {"content": "<new>"}, "5": {"content": "the"}}}'
            (Path(folder) / "tokenizer_config.json").write_text(config, encoding="utf-8")
            with megalith.Model(folder, device="cpu") as model:
                self.assert_refused(
                    Code.BAD_INPUT, "outside the vocabulary of the model", model.tokenize, "a<new>"
                )
                self.assertEqual(model.tokenize("ab"), [909, 64, 65])


TEMPLATE = (
    "{% for m in messages %}{{ m.content }}{% if tools %} {{ tools[0].name }}{% endif %}"
    "{{ ' ' if m.role == 'user' else '' }}{% endfor %}"
    "{% if add_generation_prompt %}There{% endif %}{{ tail | default('') }}"
)


class Conversations(Case):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "template.jinja"
        self.file.write_text(TEMPLATE, encoding="utf-8")
        self.model = open_model(template=self.file)
        self.addCleanup(self.model.close)

    def test_messages_become_text(self) -> None:
        messages = [{"role": "user", "content": "Once \u00e9"}]
        self.assertEqual(self.model.render(messages), "Once \u00e9 There")
        self.assertEqual(self.model.render(messages, generation_prompt=False), "Once \u00e9 ")
        self.assertEqual(self.model.render(messages, template_args={"tail": "!"})[-1], "!")
        self.assertIn("find", self.model.render(messages, tools=[{"name": "find"}]))

    def test_a_reply_streams(self) -> None:
        reply = self.model.chat([{"role": "user", "content": "Once"}], max_tokens=12)
        pieces = list(reply)
        self.assertGreater(len(pieces), 1)
        self.assertEqual(reply.prompt_ids, self.model.tokenize("Once There", special=False))
        alone = self.model.generate(reply.prompt_ids, max_tokens=12)
        self.assertEqual("".join(pieces), alone.text())

    def test_a_chat_ends_at_the_token_of_the_tokenizer(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            make_words(Path(folder))
            config = json.loads((Path(folder) / "config.json").read_text())
            (Path(folder) / "config.json").unlink()
            (Path(folder) / "config.json").write_text(json.dumps({**config, "eos_token_id": 5}))
            template = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
            (Path(folder) / "chat_template.jinja").write_text(template)
            end = {"eos_token": {"content": "\u2581bat"}}
            (Path(folder) / "tokenizer_config.json").write_text(json.dumps(end))
            messages = [{"role": "user", "content": "Hello"}]
            with megalith.Model(folder, device="cpu") as model:
                self.assertEqual(model.end_ids, [5])
                self.assertEqual(len(model.chat_end_ids), 2)
                reply = model.chat(messages, max_tokens=6)
                # The end token is an added token, and special: it has no text.
                self.assertEqual((reply.text(), reply.stop), (" gol net", "eos"))
                alone = model.generate(reply.prompt_ids, max_tokens=6)
                self.assertEqual((len(alone.text().split()), alone.stop), (5, "length"))
                listed = model.generate([{"messages": messages}], max_tokens=6)[0]
                self.assertEqual(listed.stop, "eos")

    def test_a_conversation_reads_what_is_new(self) -> None:
        messages = [{"role": "user", "content": "Once"}]
        for turn in range(3):
            reply = self.model.chat(messages, max_tokens=6)
            text = reply.text()
            with open_model() as fresh:
                other = fresh.generate(reply.prompt_ids, max_tokens=6)
                self.assertEqual(other.text(), text)
            self.assertEqual(reply.reused > 0, turn > 0)
            messages += [{"role": "assistant", "content": "There" + text}]
            messages += [{"role": "user", "content": "and then"}]

    def test_a_model_of_the_cache(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            of_model = Path(folder) / "models--org--talker"
            snapshot = of_model / "snapshots" / "abc123"
            snapshot.mkdir(parents=True)
            (of_model / "refs").mkdir()
            (of_model / "refs" / "main").write_text("abc123", encoding="utf-8")
            for file in TALES.iterdir():
                (snapshot / file.name).symlink_to(file)
            (snapshot / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
            program = (
                "import megalith\n"
                "with megalith.Model('org/talker', device='cpu') as model:\n"
                "    messages = [{'role': 'user', 'content': 'Once'}]\n"
                "    print(model.chat(messages, max_tokens=3).text())"
            )
            done = run_python(program, HF_HUB_CACHE=folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.strip())

    def test_what_is_no_conversation(self) -> None:
        self.assert_refused(Code.BAD_INPUT, "messages", self.model.chat, [])
        self.assert_refused(Code.USAGE, "messages: is no JSON", self.model.chat, [{"a": {1, 2}}])
        with open_model() as plain:
            message = [{"role": "user", "content": "Once"}]
            self.assert_refused(Code.BAD_INPUT, "template", plain.chat, message)

    def test_a_template_that_is_wrong(self) -> None:
        self.file.write_text("{% for %}", encoding="utf-8")
        message = [{"role": "user", "content": "Once"}]
        self.assert_refused(Code.BAD_INPUT, "template.jinja:1", self.model.chat, message)


class Penalties(Case):
    def test_they_change_what_is_greedy(self) -> None:
        plain = dict(max_tokens=24, ignore_eos=True)
        with open_model(penalties=True) as model:
            greedy = model.generate("Once there was", **plain).text()
            self.assertEqual(open_model().generate("Once there was", **plain).text(), greedy)
            for penalty in (
                {"repeat_penalty": 1.5},
                {"presence_penalty": 2.0, "frequency_penalty": 2.0},
            ):
                text = model.generate("Once there was", **plain, **penalty).text()
                self.assertNotEqual(text, greedy)

    def test_those_that_cannot_be(self) -> None:
        with open_model(penalties=True) as model:
            for value in (0, -1, float("nan"), 1e9, float("inf")):
                self.assert_refused(
                    Code.USAGE,
                    "repeat_penalty",
                    lambda value=value: next(model.generate("Once", repeat_penalty=value)),
                )
            for name in ("presence_penalty", "frequency_penalty"):
                for value in (2.5, -3.0, float("nan"), float("inf")):
                    options = {name: value}
                    self.assert_refused(
                        Code.USAGE, name, lambda o=options: next(model.generate("Once", **o))
                    )
        with open_model() as model:
            self.assert_refused(
                Code.BAD_INPUT, "opened without", next, model.generate("Once", repeat_penalty=1.1)
            )


class PromptLogprobs(OneModel):
    def test_they_are_those_of_score(self) -> None:
        reply = self.model.generate("Once there was", max_tokens=3, prompt_logprobs=True)
        reply.text()
        self.assertEqual(reply.prompt_logprobs, self.model.score("Once there was"))
        self.assertIsNone(reply.logprobs)
        self.assert_free()

    def test_a_prompt_of_one_token(self) -> None:
        reply = self.model.generate([5], max_tokens=3, prompt_logprobs=True)
        reply.text()
        self.assertEqual(reply.prompt_logprobs, [None])

    def test_none_by_default(self) -> None:
        reply = self.model.generate([5, 6], max_tokens=3)
        reply.text()
        self.assertIsNone(reply.prompt_logprobs)


class Lists(Case):
    """Several prompts at once, in launches of as many replies as the model was opened for."""

    PROMPTS = ["Once", "Once there was", [909, 452], "Once", [909], "There"]

    def check(self, model: megalith.Model) -> None:
        replies = model.generate(self.PROMPTS, max_tokens=6)
        self.assertEqual(len(replies), len(self.PROMPTS))
        for prompt, reply in zip(self.PROMPTS, replies):
            alone = model.generate(prompt, max_tokens=6)
            self.assertEqual(reply.text(), alone.text())
            self.assertEqual(reply.ids, alone.ids)
            self.assertEqual(reply.stop, alone.stop)
            self.assertEqual(reply.prompt_ids, alone.prompt_ids)
            self.assertIsNone(reply.error)

    def test_each_is_as_alone(self) -> None:
        for sequences in (1, 4, 6):
            with open_model(sequences=sequences) as model:
                self.assertEqual(model.sequences, sequences)
                self.check(model)

    def test_fewer_sequences_than_asked_for(self) -> None:
        with open_model(sequences=64, capacity=64) as model:
            self.assertEqual(model.sequences, 16)
            self.assertEqual(len(model.generate(["Once"] * 20, max_tokens=2)), 20)

    def test_entries_with_options(self) -> None:
        with open_model(sequences=3) as model:
            first, second, third = model.generate(
                [
                    {"text": "Once", "max_tokens": 3},
                    {"ids": [909, 452], "seed": 7, "temperature": 1.5},
                    "Once",
                ],
                max_tokens=12,
                stop=" toad",
            )
            self.assertEqual(len(first.ids), 3)
            alone = model.generate([909, 452], seed=7, temperature=1.5, max_tokens=12, stop=" toad")
            self.assertEqual(second.text(), alone.text())
            self.assertEqual((second.ids, second.seed), (alone.ids, 7))
            self.assertEqual(third.stop, "stop")

    def test_each_draws_its_seed(self) -> None:
        with open_model(sequences=2) as model:
            first, second = model.generate(["Once", "Once"], max_tokens=9, temperature=1.5)
            self.assertNotEqual(first.seed, second.seed)
            again = model.generate("Once", max_tokens=9, temperature=1.5, seed=second.seed)
            self.assertEqual(second.text(), again.text())

    def test_a_bad_prompt_does_not_lose_the_others(self) -> None:
        bad = [[913], {"text": "a", "top_q": 1}, {"text": "a", "ids": [1]}, {"text": "a", "top_k": -1}]
        with open_model(sequences=3) as model:
            for prompt in bad:
                first, wrong, last = model.generate(["Once", prompt, "Once"], max_tokens=4)
                self.assertEqual(first.text(), last.text())
                self.assertEqual(len(first.ids), 4)
                self.assertIn("prompts[1]", str(wrong.error))
                self.assertRaises(MegalithError, wrong.text)
            only = model.generate([[913]])
            self.assertIn("prompts[0]: prompt: token 0 is 913", str(only[0].error))

    def test_logprobs_and_no_prompts(self) -> None:
        with open_model(sequences=2) as model:
            one, two = model.generate(["Once there was", "Once"], max_tokens=2, logprobs=1)
            self.assertEqual(len(one.logprobs or []), 2)
            self.assertEqual(len(two.top or []), 2)
            self.assert_refused(Code.BAD_INPUT, "contains no tokens", next, model.generate([]))
            self.assertEqual(count_threads(), 0)


if __name__ == "__main__":
    unittest.main()
