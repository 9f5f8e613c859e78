"""What travels between a member and a handler process, without processes."""

import enum
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parallel_consumer_runtime.child.outcomes import of_batch, of_error, of_return, told
from parallel_consumer_runtime.child.wire import Frames, encode
from parallel_consumer_runtime.handlers import DeadLetter, Result, Retry, Skip
from parallel_consumer_runtime.workers.cpus import usable_cpus

pytestmark = pytest.mark.proves(3)


class Word(enum.StrEnum):
    """A kind of text."""

    FIRST = "first"


class Later(Retry):
    """A kind of Retry, of the handler's own."""


def travelled(outcome: tuple[object, ...]) -> tuple[Any, BaseException | None]:
    """Return an outcome as the member sees it."""
    (message,) = Frames().feed(encode((1, *outcome)))
    return told(message[1:])


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 64, 10_000])
def test_messages_are_whole_however_they_are_cut(size: int) -> None:
    """A pipe gives any number of bytes at a time."""
    messages = [(n, b"\x00" * n, "text", None, [1.5]) for n in (0, 1, 300, 5000)]
    stream = b"".join(map(encode, messages))
    frames = Frames()
    received = [message for at in range(0, len(stream), size) for message in frames.feed(stream[at : at + size])]
    assert received == messages


def test_kinds_of_text_and_bytes_arrive_as_text_and_bytes() -> None:
    """Whatever is a str or bytes may be a key, a value, a header's name or value."""
    buffer: Any = bytearray(b"v")
    result = Result(Word.FIRST, buffer, [(Word.FIRST, None), ("b", buffer)], None)
    returned, error = travelled(of_return(result))
    assert error is None
    assert returned == [Result("first", b"v", [("first", None), ("b", b"v")], None)]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (5, "'int' object is not iterable"),
        ("text", "the handler returned str"),
        (Result(None, 5, (), None), "a result's value is of type int"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        (Result(None, None, [("name", 5)], None), "a result's header is of type int"),  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
        (Result(None, None, (), "p"), "a result's partition is 'p'"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_result_is_refused_in_words(returned: object, words: str) -> None:
    """The message says what it was and what to return."""
    with pytest.raises(TypeError, match=words):
        of_return(returned)


def test_each_record_of_a_batch_has_its_outcome() -> None:
    """Results, nothing, and every kind of error beside each other; a strange one fails alone."""
    outcomes = [None, Result("k", None, (), None), Later(2, "wait"), Skip("no"), DeadLetter("bad"), OSError("disk"), 5]
    returned, error = travelled(of_batch(outcomes))
    assert error is None
    nothing, results, retry, skip, dead, raised, strange = returned
    assert nothing is None
    assert results == [Result("k", None, (), None)]
    assert (type(retry), retry.after_s, str(retry)) == (Retry, 2.0, "wait")
    assert [type(one) for one in (skip, dead)] == [Skip, DeadLetter]
    assert (type(raised).__name__, str(raised)) == ("OSError", "disk")
    assert (type(strange).__name__, str(strange)) == ("TypeError", "'int' object is not iterable")


def test_a_batch_may_be_done_as_a_whole_or_not_at_all() -> None:
    """None is all done; what is no list fails the call."""
    assert travelled(of_batch(None)) == (None, None)
    with pytest.raises(TypeError, match="return None or a list with one outcome for each record"):
        of_batch({1, 2})


def test_an_error_brings_its_traceback_and_no_more_than_fits() -> None:
    """As text, for the log; the last lines when it is long."""
    with pytest.raises(KeyError) as caught:
        os.environ["x" * 100_000]
    _, told_error = travelled(of_error(caught.value))
    assert type(told_error).__name__ == "KeyError"
    assert len(str(told_error)) <= 16 * 1024
    assert 0 < len(getattr(told_error, "told_traceback", "")) <= 16 * 1024


@pytest.mark.parametrize("after_s", [-1.0, float("nan"), float("inf"), 1e12, "soon"])
def test_a_retry_of_a_strange_delay_is_an_error_where_it_is_raised(after_s: Any) -> None:
    """What cannot be waited for fails the attempt, and nothing behind it."""
    with pytest.raises((TypeError, ValueError)):
        Retry(after_s)


def test_a_retry_that_forgot_its_delay_has_none() -> None:
    """A class of the user's own need not call ours."""

    class Forgetful(Retry):
        def __init__(self) -> None:
            Exception.__init__(self, "again")

    _, error = travelled(of_error(Forgetful()))
    assert isinstance(error, Retry)
    assert (error.after_s, str(error)) == (None, "again")


@pytest.mark.parametrize(("limit", "wanted"), [("max 100000", None), ("150000 100000", 2), ("10000 100000", 1)])
def test_processes_are_counted_by_the_containers_limit(tmp_path: Path, limit: str, wanted: int | None) -> None:
    """The limit, rounded up; without one, what this process may run on."""
    (tmp_path / "cpu.max").write_text(limit + "\n")
    unlimited = usable_cpus(tmp_path / "absent")
    assert unlimited >= 1
    assert usable_cpus(tmp_path / "cpu.max") == (unlimited if wanted is None else min(wanted, unlimited))


def test_a_handlers_process_brings_no_event_loop_and_no_client_along() -> None:
    """Ten megabytes and a tenth of a second less for each process."""
    program = "import sys, parallel_consumer_runtime.child.main; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert not {"asyncio", "uvloop", "confluent_kafka", "pydantic"} & set(ran.stdout.split())
