"""Loads libmegalith by ctypes. Declares its structs and functions (include/megalith.h), and raises
its errors as MegalithError. _launch.py and _model.py call the functions of `Library`."""

from __future__ import annotations

import ctypes
import enum
import os
import threading
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64
from ctypes import c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Optional

NAMES = ("libmegalith.so", "libmegalith.so.0")


class Code(enum.IntEnum):
    """The kind of an error: the codes of mgl_status."""

    __module__ = "megalith"

    USAGE = 1  # an invalid call
    BAD_INPUT = 2  # an unusable model, file or text
    REJECTED = 3  # the validator rejected the schedule
    DEVICE = 4  # no device, too little device memory, a driver's error
    WATCHDOG = 5  # the kernel exceeded its deadline
    GATE = 6  # an accuracy or performance gate failed
    NO_MEMORY = 7  # host memory ran out
    SYSTEM = 8  # an error of the operating system
    INTERRUPTED = 130  # cancelled, or the model was closed

    @classmethod
    def _missing_(cls, value: object) -> Code:
        return cls.SYSTEM  # a code of a newer library


class MegalithError(Exception):
    """An error of the library. `code` is its kind. `where` names the file, tensor or argument and
    may be empty. `message` is one sentence: what is wrong and what to do."""

    __module__ = "megalith"  # the module in tracebacks

    def __init__(self, code: Code, message: str, where: str = "") -> None:
        super().__init__(code, message, where)
        self.code = code
        self.message = message
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


# ---- structs -------------------------------------------------------------------------------------


class CError(ctypes.Structure):
    """mgl_error"""

    _fields_ = [("code", c_int), ("where", c_char * 256), ("message", c_char * 1600)]


class Ids(ctypes.Structure):
    """mgl_ids"""

    _fields_ = [("ids", POINTER(c_int32)), ("count", c_size_t)]


class Sized(ctypes.Structure):
    """A struct whose first field is its size. The library recognizes older versions by the size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


class OpenOptions(Sized):
    """mgl_open_options, up to the last field used here"""

    _fields_ = [
        ("size", c_size_t),
        ("device", c_char_p),
        ("dtype", c_char_p),
        ("config", c_char_p),
        ("schedule", c_char_p),
        ("capacity", c_int32),
        ("wanted", c_int32),
        ("deadline_ms", c_int32),
        ("sequences", c_int32),
        ("cancel", c_void_p),
        ("on_stage", c_void_p),
        ("stage_user", c_void_p),
        ("threads", c_int32),
        ("verify", c_bool),
        ("no_tuned", c_int32),
        ("strict_formats", c_int64),
        ("penalties", c_int64),
        ("prompt", c_int64),
        ("fewer", c_int64),
    ]


class Facts(Sized):
    """mgl_model_facts, up to the last field used here"""

    _fields_ = [
        ("size", c_size_t),
        ("device", c_char_p),
        ("dtype", c_char_p),
        ("vocab", c_int32),
        ("max_positions", c_int32),
        ("capacity", c_int32),
        ("queues", c_int32),
        ("load_s", c_double),
        ("compile_s", c_double),
        ("driver_s", c_double),
        ("import_s", c_double),
        ("check_s", c_double),
        ("weights_s", c_double),
        ("kernel_s", c_double),
        ("weight_bytes", c_uint64),
        ("instructions", c_char_p),
        ("threads", c_int32),
        ("memory_bytes", c_uint64),
        ("cache_bytes", c_uint64),
        ("scratch_bytes", c_uint64),
        ("tuned", c_char_p),
        ("note", c_char_p),
        ("sequences", c_int64),
    ]


class Request(Sized):
    """mgl_request, up to the last field used here"""

    _fields_ = [
        ("size", c_size_t),
        ("prompt", POINTER(c_int32)),
        ("prompt_count", c_size_t),
        ("max_tokens", c_int32),
        ("temperature", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("seed", c_uint64),
        ("ignore_eos", c_bool),
        ("sample", c_bool),
        ("reuse_prefix", c_int64),
        ("tokenizer", c_void_p),
        ("stops", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("min_p", c_double),
        ("logprobs", c_int64),
        ("on_likelihood", c_void_p),
        ("likelihood_user", c_void_p),
        ("repeat_penalty", c_double),
        ("presence_penalty", c_double),
        ("frequency_penalty", c_double),
        ("prompt_logprobs", c_int64),
        ("chat", c_int64),
    ]


class Conversation(Sized):
    """mgl_conversation"""

    _fields_ = [
        ("size", c_size_t),
        ("messages", c_char_p),
        ("tools", c_char_p),
        ("args", c_char_p),
        ("messages_name", c_char_p),
        ("tools_name", c_char_p),
        ("no_generation_prompt", c_bool),
        ("template_name", c_char_p),
    ]


class Result(Sized):
    """mgl_result"""

    _fields_ = [
        ("size", c_size_t),
        ("output", Ids),
        ("stop", c_int),
        ("launches", c_int32),
        ("prefill_s", c_double),
        ("decode_s", c_double),
        ("reused", c_int64),
        ("logprobs", POINTER(c_float)),
        ("top_ids", POINTER(c_int32)),
        ("top_logprobs", POINTER(c_float)),
        ("top_count", c_size_t),
        ("prompt_logprobs", POINTER(c_float)),
        ("prompt_logprob_count", c_size_t),
    ]


TokenFn = ctypes.CFUNCTYPE(c_bool, c_void_p, c_int32)
STOPS = ("eos", "length", "interrupted", "stop")  # mgl_stop

# ---- functions -----------------------------------------------------------------------------------

_ERR = POINTER(CError)
_OUT = POINTER(c_void_p)
_SIZE = POINTER(c_size_t)

# Arguments of the functions that return mgl_status. The last argument is the mgl_error.
_FALLIBLE: dict[str, list[Any]] = {
    "mgl_tokenizer_open": [c_char_p, _OUT, _ERR],
    "mgl_tokenizer_encode": [c_void_p, c_char_p, c_size_t, c_bool, POINTER(Ids), _ERR],
    "mgl_tokenizer_decode": [c_void_p, POINTER(c_int32), c_size_t, c_bool, _OUT, _SIZE, _ERR],
    "mgl_tokenizer_token": [c_void_p, c_int32, _OUT, _SIZE, _ERR],
    "mgl_tokenizer_find": [c_void_p, c_char_p, c_size_t, POINTER(c_int32), _ERR],
    "mgl_detokenizer_open": [c_void_p, c_bool, _OUT, _ERR],
    "mgl_detokenizer_next": [c_void_p, c_int32, _OUT, _SIZE, _ERR],
    "mgl_detokenizer_finish": [c_void_p, _OUT, _SIZE, _ERR],
    "mgl_detokenizer_prime": [c_void_p, POINTER(c_int32), c_size_t, _ERR],
    "mgl_detokenizer_set_stops": [c_void_p, POINTER(c_char_p), c_size_t, _ERR],
    "mgl_chat_template_open": [c_char_p, c_char_p, _OUT, _ERR],
    "mgl_chat_template_render": [c_void_p, POINTER(Conversation), _OUT, _SIZE, _ERR],
    "mgl_cancel_new": [_OUT, _ERR],
    "mgl_model_open": [c_char_p, POINTER(OpenOptions), _OUT, _ERR],
    "mgl_model_get_facts": [c_void_p, POINTER(Facts), _ERR],
    "mgl_model_get_end_ids": [c_void_p, POINTER(Ids), _ERR],
    "mgl_model_get_chat_end_ids": [c_void_p, c_void_p, POINTER(Ids), _ERR],
    "mgl_model_generate": [
        c_void_p,
        POINTER(Request),
        TokenFn,
        c_void_p,
        POINTER(Result),
        _ERR,
    ],
    "mgl_model_generate_batch": [
        c_void_p,
        POINTER(Request),
        c_size_t,
        c_void_p,
        c_void_p,
        POINTER(Result),
        _ERR,
    ],
    "mgl_model_score": [c_void_p, POINTER(c_int32), c_size_t, POINTER(c_float), _ERR],
}
# (result, arguments) of the functions that cannot fail.
_OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "mgl_version": (c_char_p, []),
    "mgl_tokenizer_close": (None, [c_void_p]),
    "mgl_tokenizer_knows": (c_bool, [c_void_p, c_int32]),
    "mgl_tokenizer_size": (c_size_t, [c_void_p]),
    "mgl_detokenizer_close": (None, [c_void_p]),
    "mgl_chat_template_close": (None, [c_void_p]),
    "mgl_model_close": (None, [c_void_p]),
    "mgl_cancel_free": (None, [c_void_p]),
    "mgl_cancel_set": (None, [c_void_p]),
    "mgl_cancel_reset": (None, [c_void_p]),
    "mgl_ids_clear": (None, [POINTER(Ids)]),
    "mgl_text_free": (None, [c_void_p]),
    "mgl_result_clear": (None, [POINTER(Result)]),
}


class Library:
    """The functions of libmegalith. Those with an error argument raise MegalithError on failure."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._c = ctypes.CDLL(path)
        except OSError as error:
            raise MegalithError(Code.SYSTEM, f"cannot be loaded: {error}", path) from None
        for name, arguments in _FALLIBLE.items():
            setattr(self, name, self._make_fallible(name, arguments))
        for name, (result, arguments) in _OTHERS.items():
            setattr(self, name, self._find(name, result, arguments))

    def __getattr__(self, name: str) -> Any:  # for type checkers; __init__ sets the attributes
        raise AttributeError(name)

    def _find(self, name: str, result: Any, arguments: list[Any]) -> Any:
        try:
            function = getattr(self._c, name)
        except AttributeError:
            message = f"is older than this package: it has no {name}; build both from one source"
            raise MegalithError(Code.SYSTEM, message, self.path) from None
        function.restype = result
        function.argtypes = arguments
        return function

    def _make_fallible(self, name: str, arguments: list[Any]) -> Any:
        function = self._find(name, c_int, arguments)

        def call(*values: Any) -> None:
            error = CError()
            if function(*values, ctypes.byref(error)):
                raise_error(error)

        return call


def raise_error(error: CError) -> None:
    where = error.where.decode("utf-8", "replace")
    raise MegalithError(Code(error.code), error.message.decode("utf-8", "replace"), where)


# ---- finding the library -------------------------------------------------------------------------

_lock = threading.Lock()
_library: Optional[Library] = None


def _open() -> Library:
    named = os.environ.get("MEGALITH_LIBRARY")
    if named:
        return Library(named)
    for name in NAMES:
        beside = Path(__file__).with_name(name)
        if beside.exists():
            return Library(str(beside))
    for name in reversed(NAMES):  # the versioned name first
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return Library(name)
    message = (
        "is not found: set MEGALITH_LIBRARY to its path, put it beside "
        f"{Path(__file__).parent}, or install it where the system's loader looks"
    )
    raise MegalithError(Code.SYSTEM, message, NAMES[0])


def load() -> Library:
    """The library. The first call finds and loads it."""
    global _library
    with _lock:
        if _library is None:
            _library = _open()
        return _library


def library_version() -> str:
    """The version of libmegalith, "major.minor.patch"."""
    version: bytes = load().mgl_version()
    return version.decode()
