"""What a member that was just made tells at /metrics, read as a server of metrics reads it."""

import asyncio
import urllib.request
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from parallel_consumer_runtime.handlers import Context, Record
from parallel_consumer_runtime.member import Member
from parallel_consumer_runtime.observe import Board, StatusServer
from parallel_consumer_runtime.settings import ParallelConsumerSpec, render_live, render_static
from tests.support.corpus import manifest

Samples = dict[tuple[str, tuple[str, ...]], float]
"""By name and the values of its labels, in the order of the labels' names."""


def exposition(happens: Callable[[Member], object] = lambda _: None, **changes: Any) -> Samples:
    """Return the samples of a member that consumes nothing.

    Args:
        happens: what befell it before it was asked.
        changes: of its manifest, in the words of `corpus.manifest`.
    """
    spec = ParallelConsumerSpec.model_validate(manifest("orders", **changes)["spec"])
    board = Board()

    async def handler(_: Record, __: Context) -> None:
        await asyncio.sleep(0)

    async def live() -> None:
        settings = render_live(spec, 1)
        member = Member("orders-0", render_static("orders", spec), settings, handler, board)
        happens(member)
        member.apply(settings)

    asyncio.run(live())
    server = StatusServer(board, 0, "127.0.0.1")
    server.start()
    try:
        return samples(server.port)
    finally:
        server.stop()


def samples(port: int) -> Samples:
    """Return what a server tells now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return {
        (one.name, tuple(value for _, value in sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }
