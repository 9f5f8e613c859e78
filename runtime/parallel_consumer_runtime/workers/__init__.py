"""Where handlers run: coroutines on the event loop, a pool of threads, or processes, behind one contract."""

from parallel_consumer_runtime.workers.asyncio_worker import AsyncWorker
from parallel_consumer_runtime.workers.contract import Source, Worker
from parallel_consumer_runtime.workers.loading import Pool, make_worker
from parallel_consumer_runtime.workers.process_worker import ProcessWorker
from parallel_consumer_runtime.workers.thread_worker import ThreadWorker

__all__ = ["AsyncWorker", "Pool", "ProcessWorker", "Source", "ThreadWorker", "Worker", "make_worker"]
