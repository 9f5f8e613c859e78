"""What each flight did to its aircraft's day: the handler of the example.

It keeps each aircraft's last flight in memory. Key order makes that right: the flights of one aircraft come one after
the other, whatever runs beside them. A restart, or a partition that moves to another pod, begins with an empty
memory: the first flight of each aircraft after it has no predecessor and its sum begins anew. A handler for keeps would
read that state from a store; see `docs/design.md` for what is handled again after a crash.
"""

import asyncio
from typing import Any

import orjson

from parallel_consumer_runtime.handlers import Context, Record, Result

CALL_S = 0.005
"""How long the service that is asked about each flight takes, seconds."""

_aircraft: dict[bytes, tuple[int, int | None]] = {}
"""Per aircraft: accumulated delay, and when its last flight landed (None: unknown), minutes."""


async def on_flight(record: Record, context: Context) -> Result:
    """Return the flight's delays, summed up per aircraft, and how long the aircraft stood on the ground before."""
    flight: dict[str, Any] = orjson.loads(record.value or b"{}")
    await asyncio.sleep(CALL_S)  # the slow call
    departure, arrival, air_time = flight["departure_delay"], flight["arrival_delay"], flight["air_time"]
    total, landed = (0, None) if record.key is None else _aircraft.get(record.key, (0, None))
    total += (departure or 0) + (arrival or 0)
    off = None if departure is None else flight["scheduled"] + departure
    turnaround = None if off is None or landed is None else off - landed
    if record.key is not None:
        _aircraft[record.key] = (total, None if off is None or air_time is None else off + air_time)
    value = orjson.dumps({"id": flight["id"], "accumulated_delay": total, "turnaround": turnaround})
    return context.result(key=record.key, value=value)
