"""The engine: which record may run now, and what may be committed. No I/O, no clock, no threads.

Every call comes from one thread (the worker's event loop); times are seconds of any monotonic clock, passed in.
"""

from parallel_consumer_runtime.core.batches import Batch, BatchShape
from parallel_consumer_runtime.core.engine import Engine
from parallel_consumer_runtime.core.figures import Bounds, EngineStatistics, Flow
from parallel_consumer_runtime.core.gates import Gates
from parallel_consumer_runtime.core.ledger import Ledger
from parallel_consumer_runtime.core.limiter import AdaptiveLimiter, Sample
from parallel_consumer_runtime.core.outbox import Delivery, Group, Outbox, Undelivered
from parallel_consumer_runtime.core.partition import Partition, PartitionCommit, PartitionKey
from parallel_consumer_runtime.core.rates import Rates
from parallel_consumer_runtime.core.retries import RetryPolicy
from parallel_consumer_runtime.core.shards import SHARDING, Task
from parallel_consumer_runtime.core.stopping import GivenUp
from parallel_consumer_runtime.core.subpartitions import ShardOf, hashed, round_robin
from parallel_consumer_runtime.core.transaction import Act, Cut, End, Refusal, Transaction

__all__ = [
    "SHARDING",
    "Act",
    "AdaptiveLimiter",
    "Batch",
    "BatchShape",
    "Bounds",
    "Cut",
    "Delivery",
    "End",
    "Engine",
    "EngineStatistics",
    "Flow",
    "Gates",
    "GivenUp",
    "Group",
    "Ledger",
    "Outbox",
    "Partition",
    "PartitionCommit",
    "PartitionKey",
    "Rates",
    "Refusal",
    "RetryPolicy",
    "Sample",
    "ShardOf",
    "Task",
    "Transaction",
    "Undelivered",
    "hashed",
    "round_robin",
]
