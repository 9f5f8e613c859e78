"""What a person sees while a manifest runs: a live table on a terminal, one plain line a second elsewhere."""

import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from parallel_consumer_runtime.local.run import MemberView

RATE_WINDOW_S = 2.0
LINE_INTERVAL_S = 1.0


class Rates:
    """Records per second of each member, over the last two seconds."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[tuple[float, int]]] = {}

    def update(self, members: Sequence[MemberView], now: float) -> dict[str, float]:
        """Take one sample of each member and return the rates. `now` is monotonic seconds."""
        return {member.name: self._rate(member, now) for member in members}

    def _rate(self, member: MemberView, now: float) -> float:
        handled = member.status.handled if member.status else 0
        samples = self._samples.setdefault(member.name, deque())
        if samples and handled < samples[-1][1]:
            samples.clear()  # the process was started again and counts from 0
        samples.append((now, handled))
        while now - samples[0][0] > RATE_WINDOW_S and len(samples) > 1:
            samples.popleft()
        elapsed = now - samples[0][0]
        return (handled - samples[0][1]) / elapsed if elapsed > 0 else 0.0


def plain_line(members: Sequence[MemberView], rates: dict[str, float]) -> str:
    """Return one line over all members."""
    statuses = [member.status for member in members if member.status is not None]
    lags = [status.lag for status in statuses]
    known = [lag for lag in lags if lag is not None]
    lag = str(sum(known)) if len(known) == len(members) else "unknown"
    concurrency = sum(status.concurrency for status in statuses)
    running = sum(member.running for member in members)
    return (
        f"handled {sum(s.handled for s in statuses):>9,}  {sum(rates.values()):>8,.0f}/s  "
        f"in flight {sum(s.in_flight for s in statuses):>4} of {concurrency:<4}  lag {lag}  members {running}/{len(members)}"
    )


def table(members: Sequence[MemberView], rates: dict[str, float], title: str) -> Table:
    """Return the live table."""
    shown = Table(title=title, title_justify="left", header_style="bold")
    for column in ("member", "state"):
        shown.add_column(column)
    for column in ("handled", "per second", "in flight", "concurrency", "lag", "partitions", "rebalances", "starts"):
        shown.add_column(column, justify="right")
    for member in members:
        status = member.status
        if status is None:
            shown.add_row(member.name, "Starting" if member.running else "Down", *["-"] * 7, str(member.starts))
            continue
        shown.add_row(
            member.name,
            status.state if member.running else "Down",
            f"{status.handled:,}",
            f"{rates[member.name]:,.0f}",
            str(status.in_flight),
            str(status.concurrency),
            "unknown" if status.lag is None else f"{status.lag:,}",
            str(len(status.partitions)),
            str(status.rebalances),
            str(member.starts),
        )
    return shown


class View:
    """Shows a run; a context manager.

    Args:
        title: above the table.
        console: where to.
    """

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._console = console
        self._rates = Rates()
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        self._line_at = 0.0

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def tell(self, messages: list[str]) -> None:
        """Print what a run has to say, and take it out of the list."""
        for message in messages:
            self.say(message)
        messages.clear()

    def update(self, members: Sequence[MemberView]) -> dict[str, float]:
        """Show how everyone is; return the rates."""
        now = time.monotonic()
        rates = self._rates.update(members, now)
        if self._live is not None:
            self._live.update(table(members, rates, self._title), refresh=True)
        elif now - self._line_at >= LINE_INTERVAL_S:
            self._line_at = now
            self.say(plain_line(members, rates))
        return rates

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Leave the last picture on the screen."""
        if self._live is not None:
            self._live.stop()
