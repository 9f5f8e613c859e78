"""The operator dies between any two calls of a SparkJob's life, and the same objects stand in the end."""

from typing import Any

import pytest

from parallel_consumer_operator.errors import ServerUnavailableError
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND
from tests.support.fake_kube import Name
from tests.support.fake_spark import NAME, SparkWorld

_SPEC: dict[str, Any] = {
    "spec__restartPolicy": {"type": "OnFailure", "onFailureRetries": 2, "onFailureRetryInterval": "10s"},
    "spec__timeouts": {"run": "1h"},
}
_END_MAX = 80


class _KilledError(Exception):
    """The operator's process is gone."""


class _Life:
    """One life: an attempt that fails, one that is suspended and resumed, one that takes too long, one that succeeds.

    Args:
        kill_at: the call at which the operator dies, counted from 1; None for a calm life.
        when: before or after the call takes effect.
        error: raised instead, when the operator is to live on and the call to fail.
    """

    def __init__(self, kill_at: int | None, when: str, error: type[Exception] | None = None) -> None:
        self.world = SparkWorld(**_SPEC)
        self.calls = 0
        self.created: list[str] = []
        self._kill_at, self._error = kill_at, error
        if when == "before":
            self.world.kube.before_write = self._call
        else:
            self.world.kube.after_write = self._call
        # Events are not the question here: only what stands.
        self.live()

    def live(self) -> None:
        """Live it."""
        first = self._until_running(1)
        self.world.fails(first, log="ValueError: x")
        self._until_running(2)
        self.world.suspend(suspended=True)
        self._until(lambda: self.world.state == "Suspended")
        self.world.suspend(suspended=False)
        self._until_running(3)
        self.world.now_s += 3600
        last = self._until_running(4)
        self.world.ends(last, 0)
        self.world.job_says("Complete", 4)
        self._until(lambda: self.world.state == "Succeeded")
        for _ in range(5):
            self._reconcile()

    def final(self) -> dict[Name, str]:
        """Return what stands."""
        return self.world.kube.final_objects()

    def _until_running(self, attempt: int) -> str:
        driver = f"{NAME}-{attempt}-x"

        def there() -> bool:
            if f"{NAME}-{attempt}" not in self.world.batch_jobs():
                return False
            if ("Pod", "default", driver) not in self.world.kube.objects:
                self.world.runs(self.world.driver_comes(attempt))
                self.world.runs(self.world.executor_comes(1, attempt))
            return self.world.state == "Running" and self.world.status["attempts"] == attempt

        self._until(there)
        return driver

    def _until(self, reached: Any) -> None:
        for _ in range(_END_MAX):
            self._reconcile()
            self.world.pods_of_suspended_go()
            if "status" in self.world.job and reached():
                return
        raise AssertionError(self.world.kube.writes)

    def _reconcile(self) -> None:
        self.world.now_s += 3
        try:
            self.world.reconcile()
        except _KilledError:
            self.world.restart()
        except ServerUnavailableError:
            pass

    def _call(self, what: str) -> None:
        self.calls += 1
        if self.calls != self._kill_at:
            return
        raise (self._error or _KilledError)(what)


@pytest.mark.parametrize("error", [None, ServerUnavailableError], ids=["killed", "refused"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_same_objects_stand_wherever_the_operator_was_killed(when: str, error: type[Exception] | None) -> None:
    """Failure, suspension, timeout, success: after any call's loss, the same attempts, each with one Job."""
    calm = _Life(None, when)
    assert calm.calls > 15
    jobs = calm.world.batch_jobs()
    assert jobs == [f"{NAME}-{number}" for number in (1, 2, 3, 4)]
    for kill_at in range(1, calm.calls + 1):
        life = _Life(kill_at, when, error)
        assert life.world.batch_jobs() == jobs, f"killed at call {kill_at}"
        creates = [write for write in life.world.kube.writes if write.startswith("create Job")]
        assert len(creates) == len(set(creates)), f"killed at call {kill_at}"
        assert _without_times(life) == _without_times(calm), f"killed at call {kill_at}"
        assert life.world.status["failures"] == 2


def test_a_second_pass_after_any_state_writes_nothing() -> None:
    """Wherever it rests, it rests."""
    world = SparkWorld(**_SPEC)
    driver = world.running()
    assert world.step() == []
    world.fails(driver)
    world.step()
    assert (world.state, world.step()) == ("Retrying", [])
    world.step(20)
    world.running(2)
    world.suspend(suspended=True)
    world.step()
    world.pods_of_suspended_go()
    world.settle()
    assert (world.state, world.step(), world.step(3600)) == ("Suspended", [], [])
    assert (SPARK_JOB_KIND, "default", NAME) in world.kube.objects


def _without_times(life: _Life) -> dict[Name, str]:
    """Forget when attempts were stopped: a life with a death in it takes longer."""
    for key, item in life.world.kube.objects.items():
        if key[0] == "Job":
            item["metadata"]["annotations"].pop("parallelconsumer.io/ended-at", None)
    return life.final()
