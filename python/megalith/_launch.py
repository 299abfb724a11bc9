"""Runs C calls that generate replies in a background thread; _model.py uses it. The tokens of a
single reply pass through a bounded queue. A list of replies is returned when all have ended.

A reader may stop at any time: by closing the reply, by an error, by dropping the reply, or because
the program ends. The launch is then aborted, and the thread is joined.
"""

from __future__ import annotations

import atexit
import collections
import ctypes
import re
import threading
import weakref
from typing import Iterator, List, Optional

from megalith._library import STOPS, Code, Library, MegalithError, Request, Result, TokenFn

ROOM = 64  # maximum of tokens in the queue


class Channel:
    """A bounded queue of tokens that either end can close."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._tokens: collections.deque[int] = collections.deque()
        self._open = True

    def put(self, token: int) -> bool:
        """Waits for room and adds a token. Returns False if the channel is closed."""
        with self._changed:
            while self._open and len(self._tokens) >= ROOM:
                self._changed.wait()
            if self._open:
                self._tokens.append(token)
                self._changed.notify_all()
            return self._open

    def get(self) -> Optional[int]:
        """Waits for a token. Returns None if the channel is closed and empty."""
        with self._changed:
            while self._open and not self._tokens:
                self._changed.wait()
            token = self._tokens.popleft() if self._tokens else None
            self._changed.notify_all()
            return token

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()


class Outcome:
    """The result of a reply."""

    def __init__(self) -> None:
        self.ids: list[int] = []  # tokens read so far
        self.stop: Optional[str] = None  # None: in progress
        self.prefill_s = 0.0
        self.decode_s = 0.0
        self.logprobs: Optional[list[float]] = None  # None: not requested, or in progress
        self.top: Optional[list[list[tuple[int, float]]]] = None
        self.prompt_logprobs: Optional[list[Optional[float]]] = None
        self.reused = 0  # tokens of the prompt taken from the cache
        self.error: Optional[BaseException] = None

    def take(self, result: Result) -> None:
        """Copies everything except the ids."""
        self.stop = STOPS[result.stop]
        self.prefill_s = result.prefill_s
        self.decode_s = result.decode_s
        self.reused = result.reused
        if result.prompt_logprob_count:
            scored = result.prompt_logprobs[1 : result.prompt_logprob_count]
            self.prompt_logprobs = [None, *scored]
        if not result.top_count:
            return
        count, top = result.output.count, result.top_count
        pairs = list(zip(result.top_ids[: count * top], result.top_logprobs[: count * top]))
        self.logprobs = result.logprobs[:count]
        self.top = [pairs[i * top : (i + 1) * top] for i in range(count)]


_running: weakref.WeakSet[Work] = weakref.WeakSet()


class Work:
    """A thread that calls the library. `busy` is held from before `start` until the thread ends.
    `keep` holds references that the call needs."""

    def __init__(
        self, library: Library, model: int, cancel: int, busy: threading.Lock, keep: object
    ) -> None:
        self._library = library
        self._model = model
        self._cancel = cancel
        self._busy = busy
        self._keep = keep
        self._thread: Optional[threading.Thread] = None
        self.left = False  # `end` was called

    def start(self) -> None:
        """Starts the thread. The caller holds `busy`; the thread releases it."""
        self._library.mgl_cancel_reset(self._cancel)
        _running.add(self)
        thread = threading.Thread(target=self._work, name="megalith", daemon=True)
        try:
            thread.start()
        except BaseException:
            self._busy.release()
            raise
        self._thread = thread

    def _work(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Aborts the call if it is in progress, and waits for the thread."""
        self.left = True
        thread = self._thread
        if thread is None:
            return
        if thread.is_alive():
            self._library.mgl_cancel_set(self._cancel)
        if thread is not threading.current_thread():  # garbage collection may run in it
            thread.join()


class Launch(Work, Outcome):
    """One call of mgl_model_generate."""

    def __init__(
        self,
        library: Library,
        model: int,
        cancel: int,
        request: Request,
        busy: threading.Lock,
        keep: object,
    ) -> None:
        Work.__init__(self, library, model, cancel, busy, keep)
        Outcome.__init__(self)
        self._request = request
        self._channel = Channel()

    def _work(self) -> None:
        try:
            self._generate()
        except BaseException as error:  # `tokens` raises it
            self.error = error
        finally:
            self._busy.release()
            self._channel.close()

    def _generate(self) -> None:
        result = Result()
        on_token = TokenFn(lambda _user, token: self._channel.put(token))
        self._library.mgl_model_generate(
            self._model, ctypes.byref(self._request), on_token, None, ctypes.byref(result)
        )
        self.take(result)
        self._library.mgl_result_clear(ctypes.byref(result))

    def tokens(self) -> Iterator[int]:
        """Yields the tokens of a started launch. Raises the error of the call."""
        while True:
            token = self._channel.get()
            if token is None:
                break
            self.ids.append(token)
            yield token
        self.end()
        if self.error:
            raise self.error

    def end(self) -> None:
        self._channel.close()
        super().end()


class Batch(Work):
    """Calls mgl_model_generate_batch for a list of requests, at most `most` per call. A request is
    None if its outcome already has an error."""

    def __init__(
        self,
        library: Library,
        model: int,
        cancel: int,
        requests: List[Optional[Request]],
        outcomes: List[Outcome],
        most: int,
        busy: threading.Lock,
        keep: object,
    ) -> None:
        super().__init__(library, model, cancel, busy, keep)
        self._requests = requests
        self._outcomes = outcomes
        self._most = most
        self.error: Optional[BaseException] = None

    def run(self) -> None:
        """Runs the thread to its end. Raises an error that concerns no single request."""
        self.start()
        assert self._thread
        try:
            self._thread.join()
        except BaseException:
            self.end()
            raise
        if self.error:
            raise self.error

    def _work(self) -> None:
        try:
            waiting = [i for i, request in enumerate(self._requests) if request is not None]
            while waiting:
                done = self._generate(waiting[: self._most])
                waiting = [i for i in waiting if i not in done]
        except BaseException as error:  # raised by `run`
            self.error = error
        finally:
            self._busy.release()

    def _generate(self, chosen: List[int]) -> List[int]:
        """Runs one launch. Returns the finished requests: all, or the one that was rejected."""
        count = len(chosen)
        wanted = [self._requests[i] for i in chosen]
        requests = (Request * count)(*(request for request in wanted if request is not None))
        results = (Result * count)()
        for result in results:
            result.size = ctypes.sizeof(Result)
        try:
            self._library.mgl_model_generate_batch(
                self._model, requests, count, None, None, results
            )
        except MegalithError as error:
            return [self._reject(chosen, error)]
        for i, result in zip(chosen, results):
            count = result.output.count
            self._outcomes[i].ids = result.output.ids[:count] if count else []
            self._outcomes[i].take(result)
            self._library.mgl_result_clear(ctypes.byref(result))
        return chosen

    def _reject(self, chosen: List[int], error: MegalithError) -> int:
        """Stores the error in the outcome of the request that it names. Returns the index."""
        named = re.match(r"requests\[(\d+)\](?:: )?", error.where)
        if error.code not in (Code.USAGE, Code.BAD_INPUT) or not (named or len(chosen) == 1):
            raise error
        index = chosen[int(named.group(1)) if named else 0]
        where = error.where[named.end() :] if named else error.where
        self._outcomes[index].error = name_prompt(index, error, where)
        return index


def name_prompt(index: int, error: MegalithError, where: str) -> MegalithError:
    """The error with the index of the prompt in front."""
    name = f"prompts[{index}]"
    return MegalithError(error.code, error.message, f"{name}: {where}" if where else name)


@atexit.register
def _end_all() -> None:
    for launch in list(_running):
        launch.end()
