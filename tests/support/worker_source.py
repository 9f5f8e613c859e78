"""A worker's source of tasks for tests: tasks in a queue, outcomes by offset, every rule of the contract asserted."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, cast

from parallel_consumer_runtime.core import Ledger, Partition, PartitionKey, Task
from parallel_consumer_runtime.handlers import Context, Record, Result
from parallel_consumer_runtime.workers.contract import Call

SCENARIO_TIMEOUT_S = 40.0


class Source:
    """Hands out one task for each value; each is settled once, on the thread that made the source.

    Args:
        values: the records' values, in offset order.
        limit: how many tasks may be out at once.
        attempts_max: how often a failing task is handed out.
    """

    def __init__(self, values: Iterable[bytes | None], limit: int, *, attempts_max: int = 1) -> None:
        partition = Partition(PartitionKey("t", 0), 1, Ledger(0), {})
        self.waiting = deque(
            Task(Record("t", 0, offset, b"key", value, 1_700_000_000_000, ()), partition, None)
            for offset, value in enumerate(values)
        )
        self.limit = limit
        self.in_flight = self.peak = self.returned_tasks = 0
        self.outcomes: dict[int, object] = {}
        self.attempts: dict[int, int] = {}
        self.all_settled = asyncio.Event()
        self._attempts_max = attempts_max
        self._left = len(self.waiting)
        self._thread = threading.get_ident()

    def results(self, offset: int) -> list[Result]:
        """Return the results that a call returned, their headers as lists."""
        outcome = self.outcomes[offset]
        results = [outcome] if isinstance(outcome, Result) else cast("Iterable[Result]", outcome)
        return [result._replace(headers=list(result.headers)) for result in results]

    def take(self) -> Call | None:
        """Hand out the first that waits, within the limit."""
        assert threading.get_ident() == self._thread
        if not self.waiting or self.in_flight >= self.limit:
            return None
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        task = self.waiting.popleft()
        task.attempt += 1
        task.started_at = time.monotonic()
        return task

    def context(self, call: Call) -> Context:
        """Return a member's context."""
        return Context("m-0", call.attempt)

    def succeeded(self, call: Call, returned: object) -> None:
        """Note what was returned."""
        self._settled(call, returned)

    def failed(self, call: Call, error: BaseException) -> None:
        """Hand the task out again, or note the error once its attempts are used up."""
        if call.attempt < self._attempts_max:
            self.in_flight -= 1
            self.waiting.append(_task(call))
        else:
            self._settled(call, error)

    def returned(self, call: Call) -> None:
        """Hand the task out again, as if it never was."""
        assert threading.get_ident() == self._thread
        task = _task(call)
        self.returned_tasks += 1
        self.in_flight -= 1
        task.attempt -= 1
        self.waiting.appendleft(task)

    def _settled(self, call: Call, outcome: object) -> None:
        assert threading.get_ident() == self._thread
        offset = _task(call).record.offset
        assert offset not in self.outcomes, "settled twice"
        self.outcomes[offset] = outcome
        self.attempts[offset] = call.attempt
        self.in_flight -= 1
        self._left -= 1
        if self._left == 0:
            self.all_settled.set()


def _task(call: Call) -> Task:
    assert isinstance(call, Task)
    return call


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine on a new event loop, with a deadline."""

    async def bounded() -> None:
        async with asyncio.timeout(SCENARIO_TIMEOUT_S):
            await scenario

    asyncio.run(bounded())


async def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds; the scenario's deadline bounds it."""
    while not holds():  # noqa: ASYNC110 - what is waited for is outside of this process
        await asyncio.sleep(0.005)


def no_failure(failure: Exception) -> None:
    """Fail the test: nothing here may end a member."""
    raise AssertionError(failure)
