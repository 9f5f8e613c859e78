"""How much was produced and is not acknowledged: when it is as much as may be, nothing is handed out until it is less.

Keeps: a broker that takes nothing costs a bounded amount of memory, whatever handlers return. The bound may be passed by what
calls that run already return.
"""

from collections.abc import Iterable

from parallel_consumer_runtime.core import Engine
from parallel_consumer_runtime.handlers import Result

RESULT_BYTES = 256
"""What a result costs here and in the client beside its key, value and headers, so that empty ones are bounded too."""
_REOPENED_BELOW = 0.75


class Outlet:
    """Belongs to one engine, and is used on its thread.

    Args:
        engine: hands nothing out while this is full.
        bytes_max: the bound.
    """

    def __init__(self, engine: Engine, bytes_max: int) -> None:
        self._engine = engine
        self.bytes_max = bytes_max
        self.held_bytes = 0
        """What is on its way now."""

    def enter(self, results: Iterable[Result]) -> int:
        """Results are on their way; `leave` is to be told the returned size."""
        size_bytes = 0
        for key, value, headers, _ in results:
            size_bytes += RESULT_BYTES + len(key or b"") + len(value or b"")
            if headers:
                size_bytes += sum(len(name) + len(content or b"") for name, content in headers)
        self.held_bytes += size_bytes
        if self.held_bytes >= self.bytes_max:
            self._engine.outlet_full = True
        return size_bytes

    def leave(self, size_bytes: int) -> None:
        """What `enter` was told of was acknowledged, or not: it is gone from here."""
        self.held_bytes -= size_bytes
        if self._engine.outlet_full and self.held_bytes <= self.bytes_max * _REOPENED_BELOW:
            self._engine.outlet_full = False
