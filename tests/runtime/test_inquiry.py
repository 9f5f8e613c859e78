"""Who asks at the same time shares a look-up, which begins after all of them asked; nobody waits without end."""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from parallel_consumer_runtime.errors import PermanentError, TemporaryError
from parallel_consumer_runtime.kafka.config import consumer_config, inquiry_config
from parallel_consumer_runtime.kafka.inquiry import Inquiry
from parallel_consumer_runtime.kafka.inquiry_lookup import OffsetsLookUp
from parallel_consumer_runtime.observe import Board, StatusServer
from parallel_consumer_runtime.settings import MemberStatus, OffsetsAnswer, ParallelConsumerSpec, render_static
from tests.support.corpus import manifest
from tests.support.waiting import wait_until

WAITING_MAX = 10


class Brokers:
    """A look-up that ends when it is told to, and answers with its number."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = threading.Semaphore(0)
        self.failure: Exception | None = None

    def __call__(self, timeout_s: float) -> OffsetsAnswer:
        """See LookUp."""
        self.begun += 1
        number = self.begun
        assert self.may_end.acquire(timeout=timeout_s + 30)
        if self.failure is not None:
            raise self.failure
        return OffsetsAnswer(at=number, topics=[])


@pytest.fixture
def brokers() -> Brokers:
    """Brokers that were not asked yet."""
    return Brokers()


@pytest.fixture
def inquiry(brokers: Brokers) -> Iterator[Inquiry]:
    """An inquiry of them."""
    one = Inquiry(lambda: brokers, WAITING_MAX, timeout_s=20)
    yield one
    one.stop()
    brokers.may_end.release(100)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads enough for all that ask."""
    with ThreadPoolExecutor(WAITING_MAX + 5) as threads:
        yield threads


def waiting(inquiry: Inquiry, count: int) -> None:
    """Wait until so many requests wait."""
    wait_until(lambda: inquiry.waiting == count, f"{count} wait", 10)


def numbers(asked: list[Future[OffsetsAnswer]]) -> set[float]:
    """Return the numbers of the look-ups that answered."""
    return {one.result(30).at for one in asked}


def test_nothing_is_there_before_the_first_request(brokers: Brokers) -> None:
    """No thread and no client: who never asks pays nothing."""
    made: list[int] = []

    def make() -> Brokers:
        made.append(threading.get_ident())
        return brokers

    threads = threading.active_count()
    one = Inquiry(make, WAITING_MAX)
    assert (made, threading.active_count()) == ([], threads)
    brokers.may_end.release(2)
    one.ask()
    one.ask()
    assert len(made) == 1
    assert made != [threading.get_ident()]
    one.stop()
    wait_until(lambda: threading.active_count() == threads, "its thread ends", 10)


def test_who_asks_during_a_look_up_shares_the_next_one(
    inquiry: Inquiry, brokers: Brokers, pool: ThreadPoolExecutor
) -> None:
    """The one that runs began before they asked: it is not theirs. One more answers all of them."""
    first = pool.submit(inquiry.ask)
    wait_until(lambda: brokers.begun == 1, "a look-up runs", 10)
    later = [pool.submit(inquiry.ask) for _ in range(WAITING_MAX - 1)]
    waiting(inquiry, WAITING_MAX)
    assert brokers.begun == 1
    brokers.may_end.release()
    assert first.result(30).at == 1
    wait_until(lambda: brokers.begun == 2, "the next one runs", 10)
    assert not any(one.done() for one in later)
    brokers.may_end.release()
    assert numbers(later) == {2}
    assert brokers.begun == 2


def test_requests_beyond_the_bound_are_refused_at_once(
    inquiry: Inquiry, brokers: Brokers, pool: ThreadPoolExecutor
) -> None:
    """They would only take a connection; there is room again when the others were answered."""
    asked = [pool.submit(inquiry.ask) for _ in range(WAITING_MAX)]
    waiting(inquiry, WAITING_MAX)
    with pytest.raises(TemporaryError, match="10 requests wait"):
        inquiry.ask()
    brokers.may_end.release(3)
    assert numbers(asked) <= {1, 2}
    assert inquiry.ask().at <= 3


def test_a_request_waits_no_longer_than_its_time(brokers: Brokers) -> None:
    """However long the look-up takes; who asks afterwards gets an answer of their own time."""
    one = Inquiry(lambda: brokers, WAITING_MAX, timeout_s=0.2)
    began_s = time.monotonic()
    with pytest.raises(TemporaryError, match=r"within 0\.2 s"):
        one.ask()
    assert 0.2 <= time.monotonic() - began_s < 10
    assert one.waiting == 0
    brokers.may_end.release(2)
    wait_until(lambda: brokers.begun == 1, "the look-up ran", 10)
    assert one.ask().at == 2
    one.stop()


@pytest.mark.parametrize("failure", [TemporaryError("no brokers"), PermanentError("no such topic"), OSError("no room")])
def test_a_failure_is_told_and_the_next_request_is_served(
    inquiry: Inquiry, brokers: Brokers, failure: Exception
) -> None:
    """Whatever it is, it is told to all that waited, and nobody afterwards waits in vain."""
    brokers.failure = failure
    brokers.may_end.release()
    with pytest.raises(TemporaryError, match=str(failure)):
        inquiry.ask()
    brokers.failure = None
    brokers.may_end.release()
    assert inquiry.ask().at == 2


def test_a_member_that_ends_says_so(inquiry: Inquiry) -> None:
    """Its successor answers."""
    inquiry.stop()
    inquiry.stop()
    with pytest.raises(TemporaryError, match="the member ends"):
        inquiry.ask()


def test_the_server_tells_answers_and_reasons(inquiry: Inquiry, brokers: Brokers) -> None:
    """200 and JSON, or 503 and a sentence; 404 where nobody asks the brokers."""

    def get(port: int) -> tuple[int, str, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/offsets?x=1", timeout=30) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, str(error.headers["Content-Type"]), error.read().decode()

    server = StatusServer(Board(), 0, "127.0.0.1", asker=inquiry)
    mute = StatusServer(Board(), 0, "127.0.0.1")
    for one in (server, mute):
        one.start()
    try:
        brokers.may_end.release(2)
        assert get(server.port) == (200, "application/json", '{"at":1.0,"topics":[]}')
        brokers.failure = TemporaryError("no broker answers")
        assert get(server.port) == (503, "text/plain; charset=utf-8", "no broker answers\n")
        assert get(mute.port)[0] == 404
    finally:
        server.stop()
        mute.stop()


def test_it_reaches_the_brokers_as_the_consumer_does() -> None:
    """Properties of spec.kafka.config and of spec.kafka.consumerConfig, and the pod's name; the client takes them all."""
    kafka = {
        "config": {"sasl.mechanisms": "PLAIN", "sasl.username": "orders"},
        "consumerConfig": {"fetch.min.bytes": "9"},
    }
    changes = {f"spec__kafka__{field}": value for field, value in kafka.items()}
    settings = render_static("orders", ParallelConsumerSpec.model_validate(manifest("orders", **changes)["spec"]))
    asking, consuming = inquiry_config(settings, "orders-0"), consumer_config(settings, "orders-0")
    for name in ("bootstrap.servers", "client.id", *kafka["config"], *kafka["consumerConfig"]):
        assert asking[name] == consuming[name]
    assert "group.id" not in asking
    OffsetsLookUp(settings, "orders-0")  # the client refuses nothing of it


def test_a_status_of_an_older_pod_has_produced_nothing() -> None:
    """During an upgrade the operator reads pods that do not tell it."""
    field = MemberStatus.model_fields["produced"]
    assert not field.is_required()
    assert field.get_default(call_default_factory=True) == []
