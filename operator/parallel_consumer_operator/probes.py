"""GET /healthz, /readyz and /metrics. Health is the queue's heartbeat and a living watcher, not merely an open port."""

import asyncio
import time
from collections.abc import Callable

from aiohttp import web
from prometheus_client import generate_latest

from parallel_consumer_operator.metrics import Metrics

HEARTBEAT_AGE_MAX_S = 120.0
"""A reconcile ends within a few requests of 30 s each; a queue that gave no sign for longer is stuck."""


class Probes:
    """Serves from `start` until `stop`. Belongs to one event loop.

    Args:
        port: TCP port.
        metrics: what /metrics shows.
        ready: whether the operator acts on what happens.
        alive: whether its watcher lives.
    """

    def __init__(self, port: int, metrics: Metrics, ready: Callable[[], bool], alive: Callable[[], bool]) -> None:
        self._port = port
        self._metrics = metrics
        self._ready = ready
        self._alive = alive
        self._beaten_at = time.monotonic()
        self._runner: web.AppRunner | None = None

    def beat(self) -> None:
        """The queue's loop came round."""
        self._beaten_at = time.monotonic()

    async def start(self) -> None:
        """Begin to answer."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, port=self._port).start()

    async def stop(self) -> None:
        """Answer nothing more. Twice is fine."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _healthz(self, _: web.Request) -> web.Response:
        age_s = time.monotonic() - self._beaten_at
        if age_s > HEARTBEAT_AGE_MAX_S:
            return web.Response(status=503, text=f"the queue gave no sign for {age_s:.0f} s\n")
        if not self._alive():
            return web.Response(status=503, text="nothing is watched\n")
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n") if self._ready() else web.Response(status=503, text="not watching yet\n")

    async def _show_metrics(self, _: web.Request) -> web.Response:
        body = await asyncio.to_thread(generate_latest, self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
