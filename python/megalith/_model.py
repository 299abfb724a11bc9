"""A model, from its folder to pieces of text."""

from __future__ import annotations

import array
import ctypes
import json
import os
import secrets
import threading
import weakref
from ctypes import byref, c_char_p, c_float, c_int32, c_size_t, c_void_p
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    overload,
)

from megalith import _library
from megalith._launch import Batch, Launch, Outcome, Work, name_prompt
from megalith._library import Code, Conversation, Facts, Ids, MegalithError, OpenOptions, Request

Prompt = Union[str, Iterable[int]]
Message = Mapping[str, Any]  # role, content, and what else the template knows
# An entry of a list: a prompt, or text, ids or messages with the options that differ.
Entry = Union[str, Iterable[int], Mapping[str, Any]]


_OPTIONS = (
    "max_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "seed",
    "stop",
    "logprobs",
    "ignore_eos",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "prompt_logprobs",
    "reuse_prefix",
    "chat",
)


def _is_list(prompt: object) -> bool:
    """Whether the argument is a list of prompts, not a text and not ids."""
    if not isinstance(prompt, (list, tuple)) or not prompt:
        return False
    return isinstance(prompt[0], (str, Mapping)) or hasattr(prompt[0], "__iter__")


def _make_ids(ids: Iterable[int]) -> Any:
    """An array for C."""
    try:
        numbers = array.array("i", ids)
    except OverflowError:
        message = "a token id has more than 32 bits"
        raise MegalithError(Code.BAD_INPUT, message, "ids") from None
    return (c_int32 * len(numbers))(*numbers)


def _make_texts(texts: List[str]) -> ctypes.Array[c_char_p]:
    """An array for C."""
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"a stop text is a str, not {type(text).__name__}")
    data = [text.encode("utf-8", "surrogatepass") for text in texts]
    if any(b"\0" in text for text in data):
        raise MegalithError(Code.USAGE, "a stop text can not hold a zero byte", "stop")
    return (c_char_p * len(data))(*data)


def _make_json(name: str, value: object) -> Optional[bytes]:
    """What C reads as JSON; None stays None."""
    if value is None:
        return None
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise MegalithError(Code.USAGE, f"is no JSON: {error}", name) from None


def _make_top_p(top_p: Optional[float]) -> float:
    """The value for C, where 0 is off: an explicit 0 becomes the least positive normal float."""
    if top_p is None:
        return 0.0
    return max(top_p, 2.0**-126) if top_p >= 0 else top_p


def _check_whole(name: str, value: int, least: int, bits: int) -> int:
    """ctypes would cut off what does not fit."""
    if least <= value < 1 << bits:
        return value
    message = f"is {value}, and must be {least} to {(1 << bits) - 1}"
    raise MegalithError(Code.USAGE, message, name)


class Reply(Iterator[str]):
    """Pieces of text, as they are made. It ends by itself; left before, by `close`, a `with` or by
    being forgotten, it aborts the launch. `ids` has the tokens that were read so far.

    The replies to a list of prompts are returned when all have ended. A reply may have an `error`."""

    def __init__(self, launch: Outcome, pieces: Iterator[str], prompt: List[int], seed: int) -> None:
        self._launch = launch
        self._pieces: Any = pieces
        self.prompt_ids = prompt
        self.seed = seed

    def __next__(self) -> str:
        piece: str = next(self._pieces)
        return piece

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the reply where it is."""
        self._pieces.close()

    def text(self) -> str:
        """What is not read yet, to the end."""
        return "".join(self)

    @property
    def ids(self) -> List[int]:
        """The new tokens that were read, the end token included."""
        return self._launch.ids

    @property
    def stop(self) -> Optional[str]:
        """Why it ended: "eos", "length", "stop" (by a text) or "interrupted"; None while it goes
        on."""
        return self._launch.stop

    @property
    def error(self) -> Optional[BaseException]:
        """The reason why there is no reply; `text` raises it. None if there is a reply."""
        return self._launch.error

    @property
    def logprobs(self) -> Optional[List[float]]:
        """With `logprobs`, the natural logarithm of the probability of each new token, before
        temperature and whatever else chooses; known when the reply has ended."""
        return self._launch.logprobs

    @property
    def top(self) -> Optional[List[List[Tuple[int, float]]]]:
        """Likewise the likeliest tokens in the place of each, and their logarithms, in order."""
        return self._launch.top

    @property
    def prompt_logprobs(self) -> Optional[List[Optional[float]]]:
        """With `prompt_logprobs`, the same of each token of the prompt; None of the first."""
        return self._launch.prompt_logprobs

    @property
    def reused(self) -> int:
        """Tokens of the prompt that the cache held from the reply before, and that were not read
        again; known when the reply has ended."""
        return self._launch.reused

    @property
    def prefill_s(self) -> float:
        """Seconds to the first token; known when the reply has ended."""
        return self._launch.prefill_s

    @property
    def decode_s(self) -> float:
        """Seconds from the first token to the last; known when the reply has ended."""
        return self._launch.decode_s


class Model:
    """A checkpoint in Hugging Face layout, a compiled model, or org/name in the local Hugging Face
    cache. `device` is "auto", "cpu", "cuda" or "cuda:1"; `dtype` "auto", "f32", "bf16" or "f16";
    `capacity` the positions of the KV cache, None for the smaller of 4,096 and the model's limit.
    `prompt` is about how many tokens the longest prompt has: of many, a GPU reads up to 128 at
    once, and each token of a reply takes a little longer then.
    With `penalties` replies may have some: tokens are counted then. `template` is the path of a
    chat template that takes the place of the model's. `sequences` is how many replies one launch
    may make, 64 at most, each with a KV cache of its own; there are fewer if the model's schedule
    or memory has no room for so many.

    A model makes one reply at a time; models are independent of each other. Tokenizing and
    detokenizing may be done by any number of threads."""

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        device: str = "auto",
        dtype: str = "auto",
        capacity: Optional[int] = None,
        prompt: int = 0,
        threads: Optional[int] = None,
        penalties: bool = False,
        template: Union[str, "os.PathLike[str]", None] = None,
        sequences: int = 1,
    ) -> None:
        self._c = _library.load()
        self._busy = threading.Lock()
        self._launch: Optional[weakref.ref[Work]] = None
        name = os.fsencode(path)
        if b"\0" in name:
            raise MegalithError(Code.USAGE, "a path can not hold a zero byte", "path")
        self._cancel = self._open_cancel()
        self._tokenizer = self._open_tokenizer(name)
        self._name = name
        self._template_file = None if template is None else os.fsencode(template)
        self._template: Optional[int] = None
        self._opening = threading.Lock()  # of the template
        options = OpenOptions(
            device=device.encode(),
            dtype=dtype.encode(),
            capacity=_check_whole("capacity", capacity or 0, 0, 31),
            threads=_check_whole("threads", threads or 0, 0, 31),
            cancel=self._cancel,
            penalties=bool(penalties),
            prompt=_check_whole("prompt", prompt, 0, 31),
            sequences=_check_whole("sequences", sequences, 1, 31),
            fewer=True,
        )
        self._handle = c_void_p()
        self._c.mgl_model_open(name, byref(options), byref(self._handle))
        self._closer = self._on_drop(self._c.mgl_model_close, self._handle.value)
        facts = Facts()
        self._c.mgl_model_get_facts(self._handle, byref(facts))
        self.device: str = facts.device.decode("utf-8", "replace")
        self.dtype: str = facts.dtype.decode()
        self.capacity: int = facts.capacity
        self.max_positions: int = facts.max_positions
        self.vocab_size: int = facts.vocab
        self.sequences: int = facts.sequences
        self.end_ids: List[int] = self._read_end_ids()
        self.chat_end_ids: List[int] = self._read_chat_end_ids()

    # ---- what it holds ---------------------------------------------------------------------------

    def _on_drop(self, function: Any, handle: Optional[int]) -> weakref.finalize[..., Model]:
        """Called when nobody has the model any more. Not when the program ends: a thread could be
        at work, and the system takes everything back."""
        closer = weakref.finalize(self, function, handle)
        closer.atexit = False
        return closer

    def _open_cancel(self) -> Optional[int]:
        handle = c_void_p()
        self._c.mgl_cancel_new(byref(handle))
        self._on_drop(self._c.mgl_cancel_free, handle.value)
        return handle.value

    def _open_tokenizer(self, name: bytes) -> Optional[int]:
        handle = c_void_p()
        self._tokenizer_error: Optional[MegalithError] = None
        try:
            self._c.mgl_tokenizer_open(name, byref(handle))
        except MegalithError as error:  # a model without one can be asked by ids
            self._tokenizer_error = error
            return None
        self._on_drop(self._c.mgl_tokenizer_close, handle.value)
        return handle.value

    def _need_tokenizer(self) -> int:
        if self._tokenizer is None:
            assert self._tokenizer_error
            raise self._tokenizer_error
        return self._tokenizer

    def _need_template(self) -> int:
        """The chat template, which is opened when it is first needed."""
        with self._opening:
            if self._template is None:
                handle = c_void_p()
                self._c.mgl_chat_template_open(self._name, self._template_file, byref(handle))
                self._on_drop(self._c.mgl_chat_template_close, handle.value)
                self._template = handle.value
            return self._template or 0

    def _need_handle(self) -> int:
        if not self._closer.alive or self._handle.value is None:
            raise MegalithError(Code.USAGE, "the model was closed", "Model")
        return self._handle.value

    def _take_busy(self) -> None:
        launch = self._launch() if self._launch else None
        if launch and launch.left:  # by another thread, which may still wait for its end
            launch.end()
        if not self._busy.acquire(blocking=False):
            message = (
                "the model is making a reply, and makes one at a time: read that to its end or "
                "close it, or open the model twice"
            )
            raise MegalithError(Code.USAGE, message, "Model")

    def _read_end_ids(self) -> List[int]:
        ids = Ids()
        self._c.mgl_model_get_end_ids(self._handle, byref(ids))
        return self._take_ids(ids)

    def _read_chat_end_ids(self) -> List[int]:
        """The end tokens of chats, with eos_token of tokenizer_config.json. If a file cannot be
        read, the replies that need the tokens have an error."""
        ids = Ids()
        try:
            tokenizer = self._need_tokenizer()
            self._c.mgl_model_get_chat_end_ids(self._handle, tokenizer, byref(ids))
        except MegalithError:
            return list(self.end_ids)
        return self._take_ids(ids)

    def _take_ids(self, ids: Ids) -> List[int]:
        numbers = ids.ids[: ids.count] if ids.count else []
        self._c.mgl_ids_clear(byref(ids))
        return list(numbers)

    def _take_bytes(self, text: c_void_p, length: c_size_t) -> bytes:
        taken = ctypes.string_at(text.value or 0, length.value)
        self._c.mgl_text_free(text)
        return taken

    def close(self) -> None:
        """Ends the reply in progress, and gives back the model's memory. Tokenizing still works."""
        launch = self._launch() if self._launch else None
        if launch:
            launch.end()
        self._closer()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- text and ids ----------------------------------------------------------------------------

    def tokenize(self, text: str, *, special: bool = True) -> List[int]:
        """The ids of a text, with the tokenizer's own special tokens if `special`."""
        data = text.encode("utf-8", "surrogatepass")
        ids = Ids()
        tokenizer = self._need_tokenizer()
        self._c.mgl_tokenizer_encode(tokenizer, data, len(data), special, byref(ids))
        return self._take_ids(ids)

    def detokenize(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of ids, without special tokens if `skip_special`."""
        numbers, text, length = _make_ids(ids), c_void_p(), c_size_t()
        tokenizer = self._need_tokenizer()
        self._c.mgl_tokenizer_decode(
            tokenizer, numbers, len(numbers), skip_special, byref(text), byref(length)
        )
        return self._take_bytes(text, length).decode("utf-8", "replace")

    def detokenize_stream(
        self, ids: Iterable[int], *, prompt: Iterable[int] = (), skip_special: bool = True
    ) -> Iterator[str]:
        """Pieces of the text of ids, as soon as they are certain: whole characters, never "". Ids
        that the tokenizer does not know, of tables that were filled up, have no text. With the ids
        of a prompt, the text is that of a reply: a space between the two is part of it."""
        yield from self._decode_until(ids, prompt, _make_texts([]), skip_special)

    def _decode_until(
        self,
        ids: Iterable[int],
        prompt: Iterable[int],
        stops: ctypes.Array[c_char_p],
        skip_special: bool = True,
    ) -> Iterator[str]:
        tokenizer, stream = self._need_tokenizer(), c_void_p()
        self._c.mgl_detokenizer_open(tokenizer, skip_special, byref(stream))
        text, length = c_void_p(), c_size_t()
        try:
            before = _make_ids(prompt)
            self._c.mgl_detokenizer_set_stops(stream, stops, len(stops))
            self._c.mgl_detokenizer_prime(stream, before, len(before))
            for token in ids:
                _check_whole("token", token, 0, 31)
                if not self._c.mgl_tokenizer_knows(tokenizer, token):
                    continue
                self._c.mgl_detokenizer_next(stream, token, byref(text), byref(length))
                if length.value:
                    yield ctypes.string_at(text.value or 0, length.value).decode()
            self._c.mgl_detokenizer_finish(stream, byref(text), byref(length))
            if length.value:
                yield ctypes.string_at(text.value or 0, length.value).decode()
        finally:
            self._c.mgl_detokenizer_close(stream)

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to a text: maybe a part of a character."""
        text, length = c_void_p(), c_size_t()
        _check_whole("token", token, 0, 31)
        self._c.mgl_tokenizer_token(self._need_tokenizer(), token, byref(text), byref(length))
        return self._take_bytes(text, length)

    def find_token(self, token: Union[str, bytes]) -> Optional[int]:
        """The lowest id whose token has exactly these bytes; None where there is none."""
        data = token.encode() if isinstance(token, str) else token
        found = c_int32()
        self._c.mgl_tokenizer_find(self._need_tokenizer(), data, len(data), byref(found))
        return found.value if found.value >= 0 else None

    def _ids_of(self, prompt: Prompt) -> List[int]:
        return self.tokenize(prompt) if isinstance(prompt, str) else list(prompt)

    # ---- replies ---------------------------------------------------------------------------------

    @overload
    def generate(  # type: ignore[overload-overlap]  # a str is a sequence of str too
        self,
        prompt: Prompt,
        *,
        max_tokens: int = 128,
        temperature: Optional[float] = None,
        top_k: int = 0,
        top_p: Optional[float] = None,
        min_p: float = 0.0,
        seed: Optional[int] = None,
        stop: Union[str, Iterable[str]] = (),
        logprobs: int = 0,
        ignore_eos: bool = False,
        repeat_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        prompt_logprobs: bool = False,
        reuse_prefix: bool = False,
        chat: bool = False,
    ) -> Reply: ...

    @overload
    def generate(
        self,
        prompt: Sequence[Entry],
        *,
        max_tokens: int = 128,
        temperature: Optional[float] = None,
        top_k: int = 0,
        top_p: Optional[float] = None,
        min_p: float = 0.0,
        seed: Optional[int] = None,
        stop: Union[str, Iterable[str]] = (),
        logprobs: int = 0,
        ignore_eos: bool = False,
        repeat_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        prompt_logprobs: bool = False,
        reuse_prefix: bool = False,
        chat: bool = False,
    ) -> List[Reply]: ...

    def generate(
        self,
        prompt: Union[Prompt, Sequence[Entry]],
        *,
        max_tokens: int = 128,
        temperature: Optional[float] = None,
        top_k: int = 0,
        top_p: Optional[float] = None,
        min_p: float = 0.0,
        seed: Optional[int] = None,
        stop: Union[str, Iterable[str]] = (),
        logprobs: int = 0,
        ignore_eos: bool = False,
        repeat_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        prompt_logprobs: bool = False,
        reuse_prefix: bool = False,
        chat: bool = False,
    ) -> Union[Reply, List[Reply]]:
        """A reply to a text or to ids, in one launch, which begins with the first piece that is
        asked for. Greedy, unless one of temperature, top_k, top_p, min_p and seed is given; then the
        temperature is 1 by itself, and a seed is drawn, which `Reply.seed` tells. 0 switches top_k
        and min_p off; a top_p of 0 keeps the most likely token, and None is off. The reply ends before the first text of `stop` in it, and `Reply.ids` with
        the token that completes that. With `logprobs` N, 20 at most, `Reply.logprobs` tells how
        likely each token was, and `Reply.top` the N likeliest; with `prompt_logprobs`,
        `Reply.prompt_logprobs` the same of the prompt, which is scored first. Penalties, for which
        the model was opened, come before temperature and change what is greedy too:
        `repeat_penalty` (0.01 to 100) as Hugging Face's repetition_penalty, of tokens in prompt and
        reply; the two others (-2 to 2) as OpenAI's, of tokens in the reply. With `reuse_prefix`
        what the prompt has in common with the prompt and the reply before is not read again. With
        `chat`, for a prompt that a chat template made, `Model.chat_end_ids` end the reply.

        Several prompts, a list of texts, lists of ids, or objects with one of `text`, `ids` and
        `messages` and options of their own, have a list of replies, which have all ended. They take
        as many launches as `Model.sequences` makes of them; without a `seed` each draws its own. A
        prompt that cannot be used has an error in `Reply.error`; the others have their replies."""
        options: Dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "min_p": min_p,
            "seed": seed,
            "stop": stop,
            "logprobs": logprobs,
            "ignore_eos": ignore_eos,
            "repeat_penalty": repeat_penalty,
            "presence_penalty": presence_penalty,
            "frequency_penalty": frequency_penalty,
            "prompt_logprobs": prompt_logprobs,
            "reuse_prefix": reuse_prefix,
            "chat": chat,
        }
        if _is_list(prompt):
            return self._generate_list(prompt, options)  # type: ignore[arg-type]
        ids = self._ids_of(prompt)  # type: ignore[arg-type]
        request, stops = self._make_request(ids, **options)
        handle, cancel = self._need_handle(), self._cancel or 0
        keep = (self, request, stops)
        launch = Launch(self._c, handle, cancel, request, self._busy, keep)
        return Reply(launch, self._make_pieces(launch, ids, stops), ids, request.seed)

    def _generate_list(self, prompts: Sequence[Entry], options: Dict[str, Any]) -> List[Reply]:
        """The replies to all, in order; a prompt that cannot be used has its error."""
        replies: List[Reply] = []
        requests: List[Optional[Request]] = []
        outcomes: List[Outcome] = []
        for index, entry in enumerate(prompts):
            request, outcome, stops = None, Outcome(), _make_texts([])
            ids: List[int] = []
            try:
                own, ids = self._read_entry(entry)
                request, stops = self._make_request(ids, **{**options, **own})
            except MegalithError as error:
                outcome.error = name_prompt(index, error, error.where)
            requests.append(request)
            outcomes.append(outcome)
            pieces = self._make_ended(outcome, ids, stops)
            replies.append(Reply(outcome, pieces, ids, request.seed if request else 0))
        handle, cancel = self._need_handle(), self._cancel or 0
        keep = (self, requests)
        batch = Batch(
            self._c, handle, cancel, requests, outcomes, self.sequences, self._busy, keep
        )
        self._take_busy()
        self._launch = weakref.ref(batch)
        batch.run()
        return replies

    def _make_ended(
        self, outcome: Outcome, prompt: List[int], stops: ctypes.Array[c_char_p]
    ) -> Iterator[str]:
        if outcome.error:
            raise outcome.error
        yield from self._decode_until(outcome.ids, prompt, stops)

    def _read_entry(self, entry: Entry) -> Tuple[Dict[str, Any], List[int]]:
        """The options of an entry of a list, and its ids."""
        if not isinstance(entry, Mapping):
            return {}, self._ids_of(entry)
        own = dict(entry)
        starts = [key for key in ("text", "ids", "messages") if key in own]
        if len(starts) != 1:
            raise MegalithError(Code.USAGE, "needs one of text, ids and messages", "")
        start = own.pop(starts[0])
        for key in own:
            if key not in _OPTIONS:
                raise MegalithError(Code.USAGE, f"is unknown; there are {', '.join(_OPTIONS)}", key)
        if starts[0] == "messages":
            own["chat"] = True
            return own, self.tokenize(self.render(start), special=False)
        return own, self._ids_of(start)

    def _make_request(
        self,
        ids: List[int],
        *,
        max_tokens: int,
        temperature: Optional[float],
        top_k: int,
        top_p: Optional[float],
        min_p: float,
        seed: Optional[int],
        stop: Union[str, Iterable[str]],
        logprobs: int,
        ignore_eos: bool,
        repeat_penalty: float,
        presence_penalty: float,
        frequency_penalty: float,
        prompt_logprobs: bool,
        reuse_prefix: bool,
        chat: bool,
    ) -> Tuple[Request, ctypes.Array[c_char_p]]:
        if not repeat_penalty > 0:
            message = f"is {repeat_penalty}, and must be 0.01 to 100, where 1 is none"
            raise MegalithError(Code.USAGE, message, "repeat_penalty")
        shaped = bool(top_k) or top_p is not None or bool(min_p) or seed is not None
        if temperature is None:
            temperature = 1.0 if shaped else 0.0
        if seed is None:
            seed = secrets.randbits(53) if temperature > 0 else 0
        numbers = _make_ids(ids)
        stops = _make_texts([stop] if isinstance(stop, str) else list(stop))
        request = Request(
            prompt=numbers,
            prompt_count=len(ids),
            max_tokens=_check_whole("max_tokens", max_tokens, 1, 31),
            temperature=temperature,
            top_k=_check_whole("top_k", top_k, 0, 31),
            top_p=_make_top_p(top_p),
            seed=_check_whole("seed", seed, 0, 64),
            ignore_eos=ignore_eos,
            tokenizer=self._need_tokenizer() if stops or chat else None,
            stops=stops,
            stop_count=len(stops),
            min_p=min_p,
            logprobs=_check_whole("logprobs", logprobs, 0, 31),
            repeat_penalty=repeat_penalty,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            prompt_logprobs=bool(prompt_logprobs),
            reuse_prefix=bool(reuse_prefix),
            chat=bool(chat),
        )
        return request, stops

    def _make_pieces(
        self, launch: Launch, prompt: List[int], stops: ctypes.Array[c_char_p]
    ) -> Iterator[str]:
        self._need_handle()
        self._need_tokenizer()
        self._take_busy()
        launch.start()
        self._launch = weakref.ref(launch)
        try:
            yield from self._decode_until(launch.tokens(), prompt, stops)
        finally:
            launch.end()

    # ---- conversations ---------------------------------------------------------------------------

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        template_args: Optional[Mapping[str, Any]] = None,
        template_name: Optional[str] = None,
        generation_prompt: bool = True,
    ) -> str:
        """The text that the model's chat template makes of a conversation, with its special tokens:
        `tokenize(text, special=False)` makes a prompt of it. `template_args` are further variables
        of the template; `template_name` chooses among several; `generation_prompt` adds what begins
        the assistant's reply."""
        conversation = Conversation(
            messages=_make_json("messages", list(messages)),
            tools=_make_json("tools", None if tools is None else list(tools)),
            args=_make_json("template_args", None if template_args is None else dict(template_args)),
            no_generation_prompt=not generation_prompt,
            template_name=None if template_name is None else template_name.encode(),
        )
        text, length = c_void_p(), c_size_t()
        self._c.mgl_chat_template_render(
            self._need_template(), byref(conversation), byref(text), byref(length)
        )
        return self._take_bytes(text, length).decode("utf-8", "replace")

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        template_args: Optional[Mapping[str, Any]] = None,
        template_name: Optional[str] = None,
        reuse_prefix: bool = True,
        **options: Any,
    ) -> Reply:
        """The assistant's reply to a conversation: messages with role and content, which `render`
        makes a prompt of. `options` are those of `generate`. Of the next turn, whose messages begin
        with these and the reply, only what is new is read."""
        text = self.render(
            messages, tools=tools, template_args=template_args, template_name=template_name
        )
        prompt = self.tokenize(text, special=False)
        return self.generate(prompt, reuse_prefix=reuse_prefix, chat=True, **options)

    def score(self, text: Prompt) -> List[Optional[float]]:
        """The natural logarithm of the probability of each token of a text, or of ids, given those
        before it; None of the first."""
        ids = _make_ids(self._ids_of(text))
        logprobs = (c_float * len(ids))()
        handle = self._need_handle()
        self._take_busy()
        try:
            self._c.mgl_cancel_reset(self._cancel)
            self._c.mgl_model_score(handle, ids, len(ids), logprobs)
        finally:
            self._busy.release()
        return [None, *logprobs[1:]]
