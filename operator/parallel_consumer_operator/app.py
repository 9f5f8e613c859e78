"""One operator process: the watcher fills the queue, workers empty it, a resync and a sampler see what events do not.

Threads: everything lives on the main thread's event loop but Kopf, whose thread only adds keys. The end of any part ends
the process with a reason: a half-dead operator must not look well.
"""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Coroutine
from itertools import product
from typing import Any

from parallel_consumer_operator.errors import ForbiddenError, NotFoundError, OperatorError
from parallel_consumer_operator.kube import ApiServer, Key, connect
from parallel_consumer_operator.metrics import Metrics
from parallel_consumer_operator.probes import Probes
from parallel_consumer_operator.queue import QueueClosedError, WorkQueue
from parallel_consumer_operator.reconcile import Reconciler, SparkJobReconciler
from parallel_consumer_operator.reconcile.members import HttpMemberReader
from parallel_consumer_operator.reconcile.writing import StatusWriter
from parallel_consumer_operator.settings import OperatorSettings
from parallel_consumer_operator.watcher import Watcher
from parallel_consumer_runtime.settings import KIND
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND

KINDS = (KIND, SPARK_JOB_KIND)
_SAMPLES_AT_ONCE = 32

_log = logging.getLogger(__name__)


class Operator:
    """Runs until it is told to stop, or until a part of it ends.

    Args:
        settings: from the environment.
        kube: the API server.
        reader: how pods are asked.
    """

    def __init__(self, settings: OperatorSettings, kube: ApiServer, reader: HttpMemberReader) -> None:
        self._settings = settings
        self._kube = kube
        self._loop = asyncio.get_running_loop()
        self._queue: WorkQueue[Key] = WorkQueue()
        writer = StatusWriter(kube, socket.gethostname())
        self._consumers = Reconciler(kube, reader, writer, wake=self._queue.add)
        self._spark_jobs = SparkJobReconciler(kube, writer, settings.spark_service_account, ended=self._run_ended)
        self._metrics = Metrics()
        self._watcher = Watcher(settings, self._post_key, self._post_end)
        self._probes = Probes(settings.port, self._metrics, self._watcher.ready.is_set, lambda: self._watcher.alive)
        self._ended = asyncio.Event()
        self._reason: str | None = None

    def stop(self) -> None:
        """End in order. Twice is fine."""
        self._ended.set()

    async def run(self) -> None:
        """Run.

        Raises:
            OperatorError: why it cannot go on.
        """
        await self._check_crd()
        await self._probes.start()
        self._watcher.start()
        parts = [self._start(self._work()) for _ in range(self._settings.workers)]
        parts += [self._start(self._resync()), self._start(self._sample())]
        try:
            await self._ended.wait()
        finally:
            self._queue.close()
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await asyncio.to_thread(self._watcher.stop)
            await self._probes.stop()
        if self._reason is not None:
            raise OperatorError(self._reason)

    async def _check_crd(self) -> None:
        namespace = self._settings.namespaces[0] if self._settings.namespaces else None
        try:
            for kind in KINDS:
                await self._kube.list(kind, namespace)
        except NotFoundError as error:
            raise OperatorError("a CRD is missing: kubectl apply -f crds/") from error
        except ForbiddenError as error:
            raise OperatorError(f"the operator's role is too small: {error}") from error

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except QueueClosedError:
                return
            self._probes.beat()
            try:
                await self._reconcile(key)
            finally:
                self._queue.done(key)
                self._probes.beat()

    async def _reconcile(self, key: Key) -> None:
        began = time.monotonic()
        try:
            again_s = await (self._spark_jobs if key.kind == SPARK_JOB_KIND else self._consumers).reconcile(key)
        except OperatorError as error:
            delay_s = self._queue.add_failed(key)
            self._metrics.reconciles.labels("failed").inc()
            _log.warning("%s: %s; tried again in %.1f s", key, error, delay_s)
        except Exception:  # noqa: BLE001 - one object's defect must not stop the others
            delay_s = self._queue.add_failed(key)
            self._metrics.reconciles.labels("crashed").inc()
            _log.exception("%s: a defect; tried again in %.1f s", key, delay_s)
        else:
            self._queue.forget(key)
            self._metrics.reconciles.labels("done").inc()
            if again_s is not None:
                self._queue.add_after(key, again_s)
        self._metrics.seconds.observe(time.monotonic() - began)

    async def _resync(self) -> None:
        while True:
            for namespace, kind in product(self._settings.namespaces or (None,), KINDS):
                try:
                    for manifest in await self._kube.list(kind, namespace):
                        self._queue.add(Key(manifest["metadata"]["namespace"], manifest["metadata"]["name"], kind))
                except OperatorError as error:
                    _log.warning("resync: %s", error)
            await asyncio.sleep(self._settings.resync_interval_s)

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(self._settings.sample_interval_s)
            known = self._consumers.known
            self._metrics.objects.set(len(known))
            self._metrics.spark_jobs.set(len(self._spark_jobs.known))
            self._metrics.waiting.set(len(self._queue))
            self._probes.beat()
            # In batches: pods that do not answer cost a second each, and must not hold up the others' figures.
            for first in range(0, len(known), _SAMPLES_AT_ONCE):
                await asyncio.gather(*map(self._sample_one, known[first : first + _SAMPLES_AT_ONCE]))

    async def _sample_one(self, key: Key) -> None:
        if await self._consumers.sample(key):
            self._queue.add_unless_failing(key)  # figures move all the time, also while the API server cannot keep up

    def _start(self, part: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(part)
        task.add_done_callback(self._part_ended)
        return task

    def _part_ended(self, part: asyncio.Task[None]) -> None:
        if part.cancelled() or self._ended.is_set():
            return
        error = part.exception()
        _log.error("a part of the operator ended", exc_info=error)
        self._end(f"a part of the operator ended: {error!r}")

    def _run_ended(self, consumer: Key) -> None:
        self._consumers.run_ended(consumer)
        self._queue.add(consumer)

    def _post_key(self, key: Key) -> None:
        self._loop.call_soon_threadsafe(self._queue.add, key)

    def _post_end(self, reason: str) -> None:
        try:
            self._loop.call_soon_threadsafe(self._end, reason)
        except RuntimeError:
            _log.debug("the event loop is closed already; %s", reason)

    def _end(self, reason: str) -> None:
        if not self._ended.is_set():
            self._reason = reason
            self._ended.set()


async def run(settings: OperatorSettings) -> None:
    """Connect and run until SIGTERM.

    Raises:
        OperatorError: why it cannot go on.
    """
    async with connect(settings.kubeconfig) as kube:
        reader = HttpMemberReader()
        try:
            operator = Operator(settings, kube, reader)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, operator.stop)
            await operator.run()
        finally:
            await reader.close()
