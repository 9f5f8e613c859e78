"""What a person sees."""

import io

from rich.console import Console

from parallel_consumer_runtime.local import MemberView
from parallel_consumer_runtime.local.view import Rates, View, plain_line
from parallel_consumer_runtime.settings import MemberState, MemberStatus


def status(handled: int, lag: int | None = 5) -> MemberStatus:
    """Return a member's status."""
    return MemberStatus(
        member="m-0",
        state=MemberState.RUNNING,
        revision="r",
        epoch=1,
        rebalances=0,
        concurrency=8,
        in_flight=3,
        buffered=3,
        handled=handled,
        failures=0,
        dead_lettered=0,
        results=0,
        skipped=0,
        metadata_errors=0,
        lag=lag,
        kafka_reachable=True,
        partitions=[],
        at=0,
        started_at=0,
    )


def view(handled: int, lag: int | None = 5) -> MemberView:
    """Return a member as the view gets it."""
    return MemberView("m-0", status(handled, lag), running=True, starts=1)


def test_rates_are_over_two_seconds_and_survive_a_restart() -> None:
    """A counter that goes back began anew; it never makes a negative rate."""
    rates = Rates()
    assert rates.update([view(0)], 0.0) == {"m-0": 0.0}
    assert rates.update([view(100)], 1.0) == {"m-0": 100.0}
    assert rates.update([view(400)], 3.0) == {"m-0": 150.0}
    assert rates.update([view(10)], 4.0) == {"m-0": 0.0}


def test_an_unknown_lag_is_said_to_be_unknown() -> None:
    """Lag is unknown, never 0, while a member has not told it."""
    assert "lag 10" in plain_line([view(1), view(1)], {})
    assert "lag unknown" in plain_line([view(1), view(1, None)], {})
    assert "lag unknown" in plain_line([view(1), MemberView("m-1", None, running=False, starts=0)], {})


def test_plain_lines_elsewhere_and_a_table_on_a_terminal() -> None:
    """Piped, a line; on a terminal, a table with the member's name."""
    piped, terminal = io.StringIO(), io.StringIO()
    with View("t", Console(file=piped)) as shown:
        shown.update([view(1234)])
    assert "handled     1,234" in piped.getvalue()
    with View("t", Console(file=terminal, force_terminal=True, width=120)) as shown:
        shown.update([view(1234)])
    assert "m-0" in terminal.getvalue()
    assert "1,234" in terminal.getvalue()
