"""Answers to questions about the logs, shared by who asks at the same time.

Keeps: an answer is of a look-up that began after its request. One look-up runs at a time; all that ask meanwhile wait for the
next one, together. No thread and no client before the first request.
"""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from parallel_consumer_runtime.errors import RuntimeFailure, TemporaryError
from parallel_consumer_runtime.settings import OffsetsAnswer

TIMEOUT_S = 5.0
"""What a request waits, and what a look-up may take: less than a client of the status server waits for it."""

_ENDS = "the member ends: ask another one"
_log = logging.getLogger(__name__)


class LookUp(Protocol):
    """Asks the brokers."""

    def __call__(self, timeout_s: float) -> OffsetsAnswer:
        """Blocks for so many seconds at most. Always called by the same thread.

        Raises:
            RuntimeFailure: why there is no answer, in one sentence.
        """
        ...


class _Round:
    """One look-up, and those who wait for it."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.answer: OffsetsAnswer | None = None
        self.failure = ""


class Inquiry:
    """Asks for whoever asks it.

    Args:
        make: returns the look-up; called by the thread that will use it, when it is needed first.
        waiting_max: requests that may wait at once.
        timeout_s: see TIMEOUT_S.
    """

    def __init__(self, make: Callable[[], LookUp], waiting_max: int, *, timeout_s: float = TIMEOUT_S) -> None:
        self._make = make
        self._waiting_max = waiting_max
        self._timeout_s = timeout_s
        self._changed = threading.Condition()
        self._next: _Round | None = None
        self.waiting = 0
        """Requests that wait now."""
        self._stopping = False
        self._thread: threading.Thread | None = None

    def ask(self) -> OffsetsAnswer:
        """Return where the logs begin and end, no older than this call. Any thread; blocks for `timeout_s` at most.

        Raises:
            RuntimeFailure: why there is no answer, in one sentence.
        """
        with self._changed:
            if self._stopping:
                raise TemporaryError(_ENDS)
            if self.waiting >= self._waiting_max:
                msg = f"{self.waiting} requests wait for the brokers already: ask again when they are answered"
                raise TemporaryError(msg)
            self.waiting += 1
            mine = self._next = self._next or _Round()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="inquiry", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            if not mine.over.wait(self._timeout_s):
                msg = f"the brokers did not tell the offsets within {self._timeout_s:g} s: ask again"
                raise TemporaryError(msg)
        finally:
            with self._changed:
                self.waiting -= 1
        if mine.answer is None:
            raise TemporaryError(mine.failure)
        return mine.answer

    def stop(self) -> None:
        """Answer nothing more. Does not wait for a look-up that runs. Twice is fine."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def _serve(self) -> None:
        look_up: LookUp | None = None
        while (one := self._take()) is not None:
            try:
                if look_up is None:
                    look_up = self._make()
                one.answer = look_up(self._timeout_s)
            except RuntimeFailure as failure:
                one.failure = str(failure)
            except Exception as error:  # noqa: BLE001 - the thread goes on: the next request must not wait in vain
                _log.exception("an inquiry failed")
                one.failure = f"the brokers could not be asked: {error!r}"
            one.over.set()

    def _take(self) -> _Round | None:
        """Wait for a request and begin its round: who asks from now on waits for another. None when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._next is not None or self._stopping)
            one, self._next = self._next, None
        if self._stopping and one is not None:
            one.failure = _ENDS
            one.over.set()
        return None if self._stopping else one
