"""The classes Model and Reply: opening a model, tokenizing, generating replies, and scoring."""

from __future__ import annotations

import array
import ctypes
import dataclasses
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
Message = Mapping[str, Any]  # role, content, and other keys of the template
# An entry of a list: a prompt, or an object with text, ids or messages and its own options.
Entry = Union[str, Iterable[int], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class _Options:
    """The options of a reply. `Model.generate` has the defaults."""

    max_tokens: int
    temperature: Optional[float]
    top_k: int
    top_p: Optional[float]
    min_p: float
    seed: Optional[int]
    stop: Union[str, Iterable[str]]
    logprobs: int
    ignore_eos: bool
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    prompt_logprobs: bool
    reuse_prefix: bool
    chat: bool


_OPTIONS = [field.name for field in dataclasses.fields(_Options)]


def _is_list(prompt: object) -> bool:
    """Whether the argument is a list of prompts, not a text or a list of ids."""
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
        raise MegalithError(Code.USAGE, "a stop text cannot hold a zero byte", "stop")
    return (c_char_p * len(data))(*data)


def _make_json(name: str, value: object) -> Optional[bytes]:
    """JSON text for C; None stays None."""
    if value is None:
        return None
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise MegalithError(Code.USAGE, f"is no JSON: {error}", name) from None


def _make_top_p(top_p: Optional[float]) -> float:
    """The value for C, where 0 is off. An explicit 0 becomes the smallest positive normal float."""
    if top_p is None:
        return 0.0
    return max(top_p, 2.0**-126) if top_p >= 0 else top_p


def _check_whole(name: str, value: int, least: int, bits: int) -> int:
    """Rejects an integer outside the field's range. ctypes would truncate it silently."""
    if least <= value < 1 << bits:
        return value
    message = f"is {value}, and must be {least} to {(1 << bits) - 1}"
    raise MegalithError(Code.USAGE, message, name)


class Reply(Iterator[str]):
    """Iterates over pieces of text while they are generated. `close`, the end of a `with` block or
    dropping the object aborts the launch. `ids` has the tokens that were read so far.

    The replies to a list of prompts are returned when all have ended. A reply may have an
    `error`."""

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
        """Ends the reply at this point."""
        self._pieces.close()

    def text(self) -> str:
        """The rest of the text, to the end of the reply."""
        return "".join(self)

    @property
    def ids(self) -> List[int]:
        """The new tokens that were read, including the end token."""
        return self._launch.ids

    @property
    def stop(self) -> Optional[str]:
        """Why the reply ended: "eos", "length", "stop" (by a stop string) or "interrupted"; None
        while the reply is in progress."""
        return self._launch.stop

    @property
    def error(self) -> Optional[BaseException]:
        """The reason why there is no reply; `text` raises it. None if there is a reply."""
        return self._launch.error

    @property
    def logprobs(self) -> Optional[List[float]]:
        """With `logprobs`: the natural logarithm of the probability of each new token, before
        temperature, penalties and filters are applied. Set when the reply has ended."""
        return self._launch.logprobs

    @property
    def top(self) -> Optional[List[List[Tuple[int, float]]]]:
        """With `logprobs`: for each new token, the likeliest tokens and their log-probabilities."""
        return self._launch.top

    @property
    def prompt_logprobs(self) -> Optional[List[Optional[float]]]:
        """With `prompt_logprobs`: the log-probability of each token of the prompt; None for the
        first."""
        return self._launch.prompt_logprobs

    @property
    def reused(self) -> int:
        """Tokens of the prompt taken from the KV cache of the reply before. Set when the reply has
        ended."""
        return self._launch.reused

    @property
    def prefill_s(self) -> float:
        """Seconds to the first token. Set when the reply has ended."""
        return self._launch.prefill_s

    @property
    def decode_s(self) -> float:
        """Seconds from the first token to the last. Set when the reply has ended."""
        return self._launch.decode_s


class Model:
    """An open model. `path` is a checkpoint in Hugging Face layout, a compiled model, or org/name
    in the local Hugging Face cache. `device` is "auto", "cpu", "cuda" or "cuda:1". `dtype` is
    "auto", "f32", "bf16" or "f16". `capacity` is the number of positions of the KV cache; None
    is the smaller of 4,096 and the model's limit. `prompt` is about the number of tokens of the
    longest prompt: for long prompts, a GPU reads up to 128 tokens at once, and each token of a
    reply takes a little longer. `penalties` allows penalties in replies; tokens are then
    counted. `template` is the path of a chat template that replaces the model's. `sequences` is
    the number of replies that one launch may generate, at most 64, each with its own KV cache.
    The model uses fewer if its schedule or the memory does not fit so many.

    A model generates one reply (or one list of replies) at a time. Models are independent of
    each other. Any number of threads may tokenize and detokenize."""

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
            raise MegalithError(Code.USAGE, "a path cannot hold a zero byte", "path")
        self._cancel = self._open_cancel()
        self._tokenizer = self._open_tokenizer(name)
        self._name = name
        self._template_file = None if template is None else os.fsencode(template)
        self._template: Optional[int] = None
        self._opening = threading.Lock()  # guards _template
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

    # ---- resources -------------------------------------------------------------------------------

    def _on_drop(self, function: Any, handle: Optional[int]) -> weakref.finalize[..., Model]:
        """Calls `function` when the model is garbage collected. Not at exit: a thread could still
        run, and the system frees everything."""
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
        except MegalithError as error:  # prompts may be given as ids
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
        """The chat template. The first call opens it."""
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
        if launch and launch.left:  # by another thread, which may still wait for the end
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
        """Ends the reply in progress and frees the model's memory. Tokenizing still works."""
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
        """Converts a text to ids. If `special`, the tokenizer adds its special tokens."""
        data = text.encode("utf-8", "surrogatepass")
        ids = Ids()
        tokenizer = self._need_tokenizer()
        self._c.mgl_tokenizer_encode(tokenizer, data, len(data), special, byref(ids))
        return self._take_ids(ids)

    def detokenize(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Converts ids to text. If `skip_special`, special tokens are left out."""
        numbers, text, length = _make_ids(ids), c_void_p(), c_size_t()
        tokenizer = self._need_tokenizer()
        self._c.mgl_tokenizer_decode(
            tokenizer, numbers, len(numbers), skip_special, byref(text), byref(length)
        )
        return self._take_bytes(text, length).decode("utf-8", "replace")

    def detokenize_stream(
        self, ids: Iterable[int], *, prompt: Iterable[int] = (), skip_special: bool = True
    ) -> Iterator[str]:
        """Yields pieces of text as soon as they are final: whole characters, never "". Padding ids,
        which the tokenizer does not have, have no text. With the ids of a `prompt`, the text is the
        reply to the prompt: a space between the two is part of the reply."""
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
        """The bytes of a token. They may be a part of a character."""
        text, length = c_void_p(), c_size_t()
        _check_whole("token", token, 0, 31)
        self._c.mgl_tokenizer_token(self._need_tokenizer(), token, byref(text), byref(length))
        return self._take_bytes(text, length)

    def find_token(self, token: Union[str, bytes]) -> Optional[int]:
        """The lowest id whose token has exactly these bytes; None if there is none."""
        data = token.encode() if isinstance(token, str) else token
        found = c_int32()
        self._c.mgl_tokenizer_find(self._need_tokenizer(), data, len(data), byref(found))
        return found.value if found.value >= 0 else None

    def _ids_of(self, prompt: Prompt) -> List[int]:
        return self.tokenize(prompt) if isinstance(prompt, str) else list(prompt)

    # ---- replies ---------------------------------------------------------------------------------

    @overload
    def generate(  # type: ignore[overload-overlap]  # a str is also a sequence of str
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
        """Generates a reply to a text or to ids in one launch, which starts when the first piece is
        read.

        Decoding is greedy unless temperature, top_k, top_p, min_p or seed is given. Then the
        default temperature is 1, and a missing seed is drawn (`Reply.seed`). 0 disables top_k
        and min_p. A top_p of 0 keeps the most likely token; None disables top_p. The text ends
        before the first stop string of `stop`, and `Reply.ids` ends with the token that
        completes the string.

        With `logprobs` N, at most 20, `Reply.logprobs` has the log-probability of each token,
        and `Reply.top` the N most likely tokens. With `prompt_logprobs`, the prompt is scored
        first, for `Reply.prompt_logprobs`.

        Penalties need a model opened with `penalties`. They are applied before the temperature,
        and also to greedy decoding. `repeat_penalty` (0.01 to 100) is Hugging Face's
        repetition_penalty, for tokens of the prompt and the reply. `presence_penalty` and
        `frequency_penalty` (-2 to 2) are OpenAI's, for tokens of the reply.

        With `reuse_prefix`, the prefix that the prompt shares with the previous prompt and reply
        is taken from the KV cache. With `chat`, for a prompt made by a chat template,
        `Model.chat_end_ids` end the reply.

        For a list of prompts, the result is a list of replies, all ended. An entry is a text, a
        list of ids, or an object with one of `text`, `ids` and `messages` and its own options.
        One launch generates up to `Model.sequences` replies. Without a `seed`, each reply draws
        its own. If a prompt cannot be used, `Reply.error` has the reason, and the others have
        their replies."""
        given = locals()
        options = _Options(**{name: given[name] for name in _OPTIONS})
        if _is_list(prompt):
            return self._generate_list(prompt, options)  # type: ignore[arg-type]
        ids = self._ids_of(prompt)  # type: ignore[arg-type]
        request, stops = self._make_request(ids, options)
        handle, cancel = self._need_handle(), self._cancel or 0
        keep = (self, request, stops)
        launch = Launch(self._c, handle, cancel, request, self._busy, keep)
        return Reply(launch, self._make_pieces(launch, ids, stops), ids, request.seed)

    def _generate_list(self, prompts: Sequence[Entry], options: _Options) -> List[Reply]:
        """Generates the replies to a list, in order. An unusable prompt's reply has its error."""
        replies: List[Reply] = []
        requests: List[Optional[Request]] = []
        outcomes: List[Outcome] = []
        for index, entry in enumerate(prompts):
            request, outcome, stops = None, Outcome(), _make_texts([])
            ids: List[int] = []
            try:
                own, ids = self._read_entry(entry)
                request, stops = self._make_request(ids, dataclasses.replace(options, **own))
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
        """Returns the options and the ids of an entry of a list."""
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
        self, ids: List[int], o: _Options
    ) -> Tuple[Request, ctypes.Array[c_char_p]]:
        if not o.repeat_penalty > 0:
            message = f"is {o.repeat_penalty}, and must be 0.01 to 100, where 1 is none"
            raise MegalithError(Code.USAGE, message, "repeat_penalty")
        temperature, seed = o.temperature, o.seed
        if temperature is None:
            shaped = bool(o.top_k) or o.top_p is not None or bool(o.min_p) or seed is not None
            temperature = 1.0 if shaped else 0.0
        if seed is None:
            seed = secrets.randbits(53) if temperature > 0 else 0
        numbers = _make_ids(ids)
        stops = _make_texts([o.stop] if isinstance(o.stop, str) else list(o.stop))
        request = Request(
            prompt=numbers,
            prompt_count=len(ids),
            max_tokens=_check_whole("max_tokens", o.max_tokens, 1, 31),
            temperature=temperature,
            top_k=_check_whole("top_k", o.top_k, 0, 31),
            top_p=_make_top_p(o.top_p),
            seed=_check_whole("seed", seed, 0, 64),
            ignore_eos=o.ignore_eos,
            tokenizer=self._need_tokenizer() if stops or o.chat else None,
            stops=stops,
            stop_count=len(stops),
            min_p=o.min_p,
            logprobs=_check_whole("logprobs", o.logprobs, 0, 31),
            repeat_penalty=o.repeat_penalty,
            presence_penalty=o.presence_penalty,
            frequency_penalty=o.frequency_penalty,
            prompt_logprobs=bool(o.prompt_logprobs),
            reuse_prefix=bool(o.reuse_prefix),
            chat=bool(o.chat),
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
        """Renders a conversation with the model's chat template, including special tokens.
        `tokenize(text, special=False)` converts the text to a prompt. `template_args` are further
        variables of the template. `template_name` selects one of several templates.
        `generation_prompt` appends the text that starts the assistant's reply."""
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
        """Generates the assistant's reply to a conversation: messages with role and content,
        converted to a prompt by `render`. `options` are the options of `generate`. In the next
        turn, whose messages start with these and the reply, only the new part is read."""
        text = self.render(
            messages, tools=tools, template_args=template_args, template_name=template_name
        )
        prompt = self.tokenize(text, special=False)
        return self.generate(prompt, reuse_prefix=reuse_prefix, chat=True, **options)

    def score(self, text: Prompt) -> List[Optional[float]]:
        """The natural logarithm of the probability of each token of a text, or of ids, given the
        tokens before it; None for the first."""
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
