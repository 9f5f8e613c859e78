"""Where handlers run: coroutines on the event loop, or a pool of threads, behind one contract."""

from parallel_consumer_runtime.workers.asyncio_worker import AsyncWorker
from parallel_consumer_runtime.workers.contract import Source, Worker
from parallel_consumer_runtime.workers.loading import make_worker
from parallel_consumer_runtime.workers.thread_worker import ThreadWorker

__all__ = ["AsyncWorker", "Source", "ThreadWorker", "Worker", "make_worker"]
