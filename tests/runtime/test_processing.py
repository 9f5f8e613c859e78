"""From offered records to outcomes, without a broker: batches, deferral, the retry topic, dead letters, schedules, stops."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from parallel_consumer_runtime.core import Delivery, Ledger, Partition, PartitionKey, Undelivered
from parallel_consumer_runtime.errors import PermanentError, RuntimeFailure
from parallel_consumer_runtime.handlers import Completion, Context, DeadLetter, Handler, Record, Result, Retry, Skip
from parallel_consumer_runtime.outcomes import Clock
from parallel_consumer_runtime.processing import Processing, key_of
from parallel_consumer_runtime.retry_topic import NOT_BEFORE, attempts_before, origin
from parallel_consumer_runtime.settings import ParallelConsumerSpec, render_live, render_static
from tests.support.corpus import manifest
from tests.support.virtual_time import run

P0 = PartitionKey("orders", 0)
BEGAN_AT = 1_750_000_000.0


class Sent:
    """Keeps what is produced, and acknowledges it at once, or says why not."""

    def __init__(self, refuse: int = 0) -> None:
        self.sent: list[tuple[str, Result]] = []
        self.refuse = refuse

    def send(self, topic: str, results: Sequence[Result], delivery: Delivery, source: Partition) -> None:
        del source
        loop = asyncio.get_running_loop()
        if self.refuse:
            self.refuse -= 1
            loop.call_soon(delivery, Undelivered("refused", permanent=False))
            return
        self.sent.extend((topic, result) for result in results)
        loop.call_soon(delivery, None)


class Bench:
    """One Processing on virtual time; the wall clock runs along."""

    def __init__(self, handler: Handler, *, sent: Sent | None = None, **processing: Any) -> None:
        self.sent = sent or Sent()
        self.failures: list[RuntimeFailure] = []
        spec = self.spec(**processing)
        loop = asyncio.get_running_loop()
        self.began_s = loop.time()
        clock = Clock(loop.time, lambda: BEGAN_AT + loop.time() - self.began_s)
        self.processing = Processing(
            "orders-0",
            render_static("orders", spec),
            render_live(spec, 1),
            handler,
            self.sent,
            self.failures.append,
            clock=clock,
        )
        self.engine, self.counters = self.processing.engine, self.processing.dispatcher.counters
        self.engine.assign(P0, Ledger(0))
        self.processing.worker.start()
        self.offered = 0

    @staticmethod
    def spec(**processing: Any) -> ParallelConsumerSpec:
        """Return a spec whose processing has these fields, in the manifest's words."""
        changes: dict[str, Any] = {"spec__results": {"topic": "quotes"}, "spec__processing": processing}
        return ParallelConsumerSpec.model_validate(manifest("orders", **changes)["spec"])

    @property
    def now_s(self) -> float:
        """Seconds since the beginning."""
        return asyncio.get_running_loop().time() - self.began_s

    def offer(self, *records: tuple[bytes | None, tuple[tuple[str, bytes], ...]] | bytes | None) -> None:
        """Offer records by key, or by key and headers."""
        made: list[Record] = []
        for item in records:
            key, headers = item if isinstance(item, tuple) else (item, ())
            made.append(Record("orders", 0, self.offered + len(made), key, b"v", 0, headers))
        self.offered += len(made)
        self.engine.offer(P0, made, asyncio.get_running_loop().time())
        self.processing.dispatcher.wake()

    async def settled(self) -> None:
        """Wait until every record is complete."""
        async with asyncio.timeout(100_000):
            while self.engine.completed < self.offered:  # noqa: ASYNC110 - on virtual time, nothing signals it
                await asyncio.sleep(0.001)

    @property
    def committable(self) -> int:
        """The offset that may be committed."""
        (commit,) = self.engine.final_commits([P0])
        return commit.offset


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on virtual time; what it leaves running is cancelled with its loop."""
    run(scenario())


@pytest.mark.proves(4)
def test_a_batch_is_settled_record_by_record() -> None:
    """None, a result, a retry, a skip and a dead letter in one batch: each record its own outcome."""

    async def scenario() -> None:
        calls: list[list[int]] = []

        async def handler(records: Sequence[Record], context: Context) -> list[object]:
            await asyncio.sleep(0.01)
            calls.append([record.offset for record in records])
            outcomes: dict[int, object] = {
                1: context.result(key=b"q", value=b"1"),
                2: Retry(after_s=5.0) if context.attempt == 1 else None,
                3: Skip(),
                4: DeadLetter("no"),
            }
            return [outcomes.get(record.offset) for record in records]

        bench = Bench(handler, batch={"size": 8}, deadLetter={"topic": "dead"})  # type: ignore[arg-type]  # outcomes of every kind
        bench.offer(b"a", b"b", b"c", b"d", b"e")
        await bench.settled()
        assert calls == [[0, 1, 2, 3, 4], [2]]
        assert bench.now_s > 5
        assert Counter(topic for topic, _ in bench.sent.sent) == {"quotes": 1, "dead": 1}
        assert (bench.counters.skipped, bench.counters.dead_lettered, bench.committable) == (1, 1, 5)

    play(scenario)


@pytest.mark.proves(4)
@pytest.mark.parametrize("returned", [[None], "ab", 7, [None] * 9])
def test_a_batch_with_a_wrong_number_of_outcomes_is_an_attempt_of_each(returned: object) -> None:
    """Nothing is complete by a mistake; the message says what is expected."""

    async def scenario() -> None:
        tries = 0

        async def handler(_records: Sequence[Record], _context: Context) -> object:
            nonlocal tries
            tries += 1
            await asyncio.sleep(0)
            return returned if tries == 1 else None

        bench = Bench(handler, batch={"size": 3})  # type: ignore[arg-type]  # what is returned is wrong on purpose
        bench.offer(b"a", b"b", b"c")
        await bench.settled()
        assert bench.counters.failures == 3

    play(scenario)


@pytest.mark.proves(4)
def test_a_batch_waits_for_its_minimum_no_longer_than_it_may() -> None:
    """Two of four come; the linger over, they run as they are."""

    async def scenario() -> None:
        sizes: list[tuple[int, float]] = []
        bench: Bench

        async def handler(records: Sequence[Record], _context: Context) -> None:
            await asyncio.sleep(0)
            sizes.append((len(records), round(bench.now_s, 2)))

        bench = Bench(handler, batch={"size": 4, "minimum": 4, "linger": "2s"})
        bench.offer(b"a", b"b")
        await bench.settled()
        assert sizes == [(2, 2.0)]

    play(scenario)


@pytest.mark.proves(19)
def test_a_deferred_record_is_complete_when_its_completion_is_called() -> None:
    """It holds its key and its place until then; results given to the completion are produced."""

    async def scenario() -> None:
        held: list[tuple[Record, Completion, Context]] = []

        async def handler(record: Record, context: Context) -> None:
            await asyncio.sleep(0)
            held.append((record, context.defer(), context))

        bench = Bench(handler, deferral={"timeout": "1h"}, concurrency={"fixed": 2})
        bench.offer(b"a", b"a", b"b", b"c")
        await asyncio.sleep(1)
        assert [record.offset for record, _, _ in held] == [0, 2], "two places, both taken"
        _, completion, context = held[0]
        assert completion.complete(context.result(value=b"x"))
        assert not completion.complete(), "once"
        await asyncio.sleep(1)
        assert [record.offset for record, _, _ in held] == [0, 2, 3], "its key waits until the result is acknowledged"
        held[1][1].complete()
        await asyncio.sleep(1)
        assert [record.offset for record, _, _ in held] == [0, 2, 3, 1]
        held[2][1].complete()
        held[3][1].fail(Skip())
        await bench.settled()
        assert [topic for topic, _ in bench.sent.sent] == ["quotes"]
        assert (bench.counters.late_completions, bench.counters.skipped) == (1, 1)

    play(scenario)


@pytest.mark.proves(19)
def test_forgotten_completions_are_reaped_and_nothing_leaks() -> None:
    """A quarter of the completions never come: each is a failed attempt, tried again, and all is complete in the end."""

    async def scenario() -> None:
        forgotten: list[Completion] = []

        async def handler(record: Record, context: Context) -> None:
            await asyncio.sleep(0.001)
            completion = context.defer()
            if record.offset % 4 == 0 and context.attempt == 1:
                forgotten.append(completion)
            else:
                asyncio.get_running_loop().call_later(0.5, completion.complete)

        bench = Bench(handler, deferral={"timeout": "10s"})
        bench.offer(*[b"%d" % n for n in range(400)])
        await bench.settled()
        assert (len(forgotten), bench.counters.reaped, bench.counters.failures) == (100, 100, 100)
        assert not forgotten[0].complete()
        assert bench.counters.late_completions == 1
        statistics = bench.engine.statistics()
        assert (statistics.in_flight, statistics.buffered, len(bench.processing.dispatcher.running)) == (0, 0, 0)
        assert bench.committable == 400

    play(scenario)


@pytest.mark.proves(19)
def test_a_completion_may_come_from_another_thread_and_before_the_handler_returns() -> None:
    """Whichever comes first, the record is complete once."""

    async def scenario() -> None:
        async def handler(_record: Record, context: Context) -> None:
            completion = context.defer()
            thread = threading.Thread(target=completion.complete)
            thread.start()
            thread.join()
            await asyncio.sleep(0.01)

        bench = Bench(handler, deferral={})
        bench.offer(b"a", b"b", b"a")
        await bench.settled()
        assert bench.counters.calls == 3

    play(scenario)


@pytest.mark.proves(19)
def test_what_a_handler_does_wrong_with_deferral_is_a_failed_attempt() -> None:
    """Deferred and returned, deferred twice, deferred and raised: the first attempt fails, the second counts."""

    async def scenario() -> None:
        completions: list[Completion] = []

        async def handler(record: Record, context: Context) -> Result | None:
            await asyncio.sleep(0)
            if context.attempt > 1:
                return None
            completions.append(context.defer())
            if record.key == b"returned":
                return context.result(value=b"x")
            if record.key == b"twice":
                context.defer()
            raise ValueError

        bench = Bench(handler, deferral={})
        bench.offer(b"returned", b"twice", b"raised")
        await bench.settled()
        assert bench.counters.failures == 3
        assert not any(completion.complete() for completion in completions)

    play(scenario)


def test_deferring_without_the_setting_says_which_one() -> None:
    """The handler's author reads it in the log."""
    with pytest.raises(RuntimeError, match=r"spec\.processing\.deferral"):
        Context("m", 1).defer()


@pytest.mark.proves(13)
def test_a_failing_record_goes_to_the_retry_topic_and_its_key_goes_on() -> None:
    """After its attempts in place; it says where it comes from, how often it was tried, and not before when."""

    async def scenario() -> None:
        order: list[int] = []

        async def handler(record: Record, _context: Context) -> None:
            await asyncio.sleep(0)
            order.append(record.offset)
            if record.offset == 0:
                raise ValueError

        retry = {"topic": "orders-retry", "afterAttempts": 2, "initialBackoff": "10s", "maxBackoff": "1m"}
        bench = Bench(handler, retryTopic=retry)
        bench.offer((b"a", (("trace", b"7"),)), b"a", b"b")
        await bench.settled()
        assert order.count(0) == 2
        assert order.index(1) > order.index(0)
        ((topic, sent),) = bench.sent.sent
        assert (topic, sent.key, sent.value) == ("orders-retry", b"a", b"v")
        returned = Record("orders-retry", 1, 50, b"a", b"v", 99, tuple(sent.headers))  # type: ignore[arg-type]  # as a broker returns it
        assert attempts_before(returned) == 2
        assert origin(returned)[:3] == ("orders", 0, 0)
        assert origin(returned).headers == (("trace", b"7"),)
        not_before_ms = int(dict(returned.headers)[NOT_BEFORE] or b"")
        assert 5 <= not_before_ms / 1000 - BEGAN_AT <= 11

    play(scenario)


@pytest.mark.proves(13)
def test_attempts_count_through_the_retry_topic_to_the_dead_letter() -> None:
    """Three attempts in all, two of them before the retry topic; the dead letter names the first place."""

    async def scenario() -> None:
        async def handler(_record: Record, _context: Context) -> None:
            await asyncio.sleep(0)
            raise ValueError

        bench = Bench(
            handler,
            retry={"maxAttempts": 3},
            retryTopic={"topic": "orders-retry", "afterAttempts": 2},
            deadLetter={"topic": "dead"},
        )
        bench.offer(b"a")
        await bench.settled()
        ((_, sent),) = bench.sent.sent
        bench.offer((b"a", tuple(sent.headers)))  # type: ignore[arg-type]  # as a broker returns it
        async with asyncio.timeout(3600):
            while bench.counters.dead_lettered == 0:  # noqa: ASYNC110 - on virtual time
                await asyncio.sleep(0.01)
        assert bench.now_s >= 5, "it waited for its time"
        told = dict(bench.sent.sent[1][1].headers)
        assert told["parallel-consumer-dead-letter-attempts"] == b"3"
        assert told["parallel-consumer-dead-letter-topic"] == b"orders"
        assert told["parallel-consumer-dead-letter-offset"] == b"0"
        await bench.settled()

    play(scenario)


@pytest.mark.proves(13)
@pytest.mark.parametrize(
    ("stop", "given_up", "words"),
    [
        ({"maxConsecutive": 5}, 4, "5 records in a row failed for good"),
        ({"maxRatio": 0.5, "window": 20}, 9, "10 of the last 20 records failed for good"),
    ],
)
def test_too_many_dead_letters_end_the_process_instead(stop: dict[str, Any], given_up: int, words: str) -> None:
    """The record that is one too many is not given up: the process ends, and it is handled again."""

    async def scenario() -> None:
        async def handler(_record: Record, _context: Context) -> None:
            await asyncio.sleep(0)
            raise ValueError

        bench = Bench(
            handler, deadLetter={"topic": "dead", "stop": stop}, retry={"maxAttempts": 1}, concurrency={"fixed": 1}
        )
        bench.offer(*[b"%d" % n for n in range(50)])
        while not bench.failures:  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.001)
        bench.engine.halted = True
        assert bench.counters.dead_lettered == given_up
        assert isinstance(bench.failures[0], PermanentError)
        assert words in str(bench.failures[0])
        assert bench.committable == given_up

    play(scenario)


@pytest.mark.proves(13)
def test_a_dead_letter_now_and_then_stops_nothing() -> None:
    """Every tenth record is bad: neither five in a row nor half of the last twenty."""

    async def scenario() -> None:
        async def handler(record: Record, _context: Context) -> None:
            await asyncio.sleep(0)
            if record.offset % 10 == 0:
                raise ValueError

        stop = {"maxConsecutive": 5, "maxRatio": 0.5, "window": 20}
        bench = Bench(handler, deadLetter={"topic": "dead", "stop": stop}, retry={"maxAttempts": 1})
        bench.offer(*[b"%d" % n for n in range(500)])
        await bench.settled()
        assert (bench.counters.dead_lettered, bench.failures) == (50, [])

    play(scenario)


@pytest.mark.proves(11)
def test_results_that_are_refused_are_produced_again_and_are_no_attempt() -> None:
    """The record is complete only once they are acknowledged."""

    async def scenario() -> None:
        attempts: list[int] = []

        async def handler(_record: Record, context: Context) -> Result:
            await asyncio.sleep(0)
            attempts.append(context.attempt)
            return context.result(value=b"x")

        bench = Bench(handler, sent=Sent(refuse=3))
        bench.offer(b"a")
        await bench.settled()
        assert attempts == [1, 1, 1, 1]
        assert len(bench.sent.sent) == 1

    play(scenario)


@pytest.mark.proves(20)
def test_a_scheduled_record_starts_at_its_time() -> None:
    """By the header that the manifest names; one that is no number starts at once and is counted."""

    async def scenario() -> None:
        started: dict[int, float] = {}
        bench: Bench

        async def handler(record: Record, _context: Context) -> None:
            await asyncio.sleep(0)
            started[record.offset] = bench.now_s

        bench = Bench(handler, scheduledTimeHeader="not-before")
        at = b"%d" % ((BEGAN_AT + 90) * 1000)
        bench.offer((b"a", (("not-before", at),)), (b"b", (("not-before", b"soon"),)), b"c")
        await bench.settled()
        assert started[0] == pytest.approx(90, abs=0.1)
        assert max(started[1], started[2]) < 1
        assert bench.processing.schedule is not None
        assert bench.processing.schedule.unreadable > 0

    play(scenario)


@pytest.mark.proves(18)
@pytest.mark.proves(23)
def test_rates_and_ignored_keys_are_applied_live() -> None:
    """A new live half takes effect at once; what was used up of an unchanged rate stays used up."""

    async def scenario() -> None:
        handled: list[bytes | None] = []

        async def handler(record: Record, _context: Context) -> None:
            await asyncio.sleep(0)
            handled.append(record.key)

        bench = Bench(handler, rateLimit={"records": 0})
        bench.offer(*[b"%d" % n for n in range(100)])
        await asyncio.sleep(10)
        assert handled == []
        live = render_live(bench.spec(rateLimit={"records": 10}, ignoredKeys=["50", "base64:NTE="]), 1)
        bench.processing.apply(live)
        bench.processing.dispatcher.wake()
        await asyncio.sleep(5)
        bench.processing.apply(live)
        assert len(handled) == pytest.approx(50, abs=2)
        await bench.settled()
        assert bench.now_s == pytest.approx(20, abs=0.5)
        assert not {b"50", b"51"} & set(handled)
        assert bench.engine.ignored == 2

    play(scenario)


@pytest.mark.proves(15)
@pytest.mark.parametrize("by", ["Hash", "RoundRobin", "Function"])
def test_sub_partitions_put_their_records_in_order(by: str) -> None:
    """One record of a sub-partition at a time, in offset order; the sub-partitions side by side, evenly filled."""

    async def scenario() -> None:
        running: Counter[int] = Counter()
        order: dict[int, list[int]] = {}
        most = 0

        def sub_partition(record: Record) -> int:
            if by == "RoundRobin":
                return record.offset % 4
            return crc(record) % 4

        async def handler(record: Record, _context: Context) -> None:
            nonlocal most
            number = sub_partition(record)
            running[number] += 1
            assert running[number] == 1
            most = max(most, running.total())
            order.setdefault(number, []).append(record.offset)
            await asyncio.sleep(0.01)
            running[number] -= 1

        spec: dict[str, Any] = {"by": by, "count": 4}
        if by == "Function":
            spec["function"] = f"{__name__}:quarter"
        bench = Bench(handler, subPartitions=spec)
        bench.offer(*[b"key-%d" % n for n in range(400)])
        await bench.settled()
        assert most == 4
        assert all(offsets == sorted(offsets) and 70 <= len(offsets) <= 130 for offsets in order.values())

    play(scenario)


def crc(record: Record) -> int:
    """Return the CRC-32 of the key."""
    import zlib  # noqa: PLC0415 - only for this

    return zlib.crc32(record.key or b"")


def quarter(record: Record) -> int:
    """A user's function of sub-partitions."""
    return crc(record) % 4


def broken(record: Record) -> object:
    """A user's function that fails, or returns what cannot be held."""
    if record.key == b"raise":
        raise ValueError("no")
    return [1]


@pytest.mark.proves(15)
@pytest.mark.parametrize(("key", "words"), [(b"raise", "raised ValueError: no"), (b"list", "returned list")])
def test_a_function_of_sub_partitions_that_fails_is_named(key: bytes, words: str) -> None:
    """The failure names the field, the function and the record."""

    async def scenario() -> None:
        async def handler(_record: Record, _context: Context) -> None:
            await asyncio.sleep(0)

        bench = Bench(handler, subPartitions={"by": "Function", "function": f"{__name__}:broken"})
        with pytest.raises(PermanentError) as seen:
            bench.offer(key)
        assert str(seen.value).startswith("spec.processing.subPartitions.function: ")
        assert words in str(seen.value)
        assert "orders[0]@0" in str(seen.value)

    play(scenario)


def test_keys_are_named_as_text_or_as_base64() -> None:
    """What is no base64 is a key that begins with this word."""
    assert [key_of(text) for text in ("a", "base64:AAE=", "base64:?")] == [b"a", b"\x00\x01", b"base64:?"]
