"""Committed offsets written and read with their metadata byte for byte: public functions of librdkafka, called directly.

`Consumer.commit`, `Consumer.committed` and `Producer.send_offsets_to_transaction` are not used where metadata matters. Writing, confluent-kafka counts C's
terminating NUL as metadata, and the Java library refuses a map that ends in it. Reading, it looks for a NUL that is
not there when another client wrote the metadata: librdkafka tells the length beside it, and stale bytes of the heap
follow. Read as run lengths they would be further runs, and records that nobody handled would count as complete.
"""

import ctypes
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, cimpl


class Position(NamedTuple):
    """A group's commit in one partition."""

    topic: str
    partition: int
    offset: int
    """Negative when nothing is committed."""
    metadata: str
    """ASCII; bytes of another application that are not are read as U+FFFD."""


class _Partition(ctypes.Structure):
    """rd_kafka_topic_partition_t."""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
        ("opaque", ctypes.c_void_p),
        ("err", ctypes.c_int),
        ("private", ctypes.c_void_p),
    )


class _List(ctypes.Structure):
    """rd_kafka_topic_partition_list_t."""

    _fields_ = (("count", ctypes.c_int), ("size", ctypes.c_int), ("elements", ctypes.POINTER(_Partition)))


_OnCommit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_List), ctypes.c_void_p)
# Opened through the extension module: the symbols are those of the very librdkafka that it was linked with.
_library = ctypes.CDLL(cimpl.__file__)


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function: Any = getattr(_library, name)
    function.restype, function.argtypes = result, arguments
    found: Callable[..., Any] = function
    return found


_list_new = _function("rd_kafka_topic_partition_list_new", ctypes.POINTER(_List), ctypes.c_int)
_list_add = _function(
    "rd_kafka_topic_partition_list_add",
    ctypes.POINTER(_Partition),
    ctypes.POINTER(_List),
    ctypes.c_char_p,
    ctypes.c_int32,
)
_list_destroy = _function("rd_kafka_topic_partition_list_destroy", None, ctypes.POINTER(_List))
_allocate = _function("rd_kafka_mem_malloc", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_committed = _function("rd_kafka_committed", ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_List), ctypes.c_int)
_commit = _function("rd_kafka_commit", ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_List), ctypes.c_int)
_commit_queue = _function(
    "rd_kafka_commit_queue",
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(_List),
    ctypes.c_void_p,
    _OnCommit,
    ctypes.c_void_p,
)


_group_metadata = _function("rd_kafka_consumer_group_metadata", ctypes.c_void_p, ctypes.c_void_p)
_group_metadata_destroy = _function("rd_kafka_consumer_group_metadata_destroy", None, ctypes.c_void_p)
_send_offsets = _function(
    "rd_kafka_send_offsets_to_transaction",
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(_List),
    ctypes.c_void_p,
    ctypes.c_int,
)
_error_code = _function("rd_kafka_error_code", ctypes.c_int, ctypes.c_void_p)
_error_string = _function("rd_kafka_error_string", ctypes.c_char_p, ctypes.c_void_p)
_error_is_fatal = _function("rd_kafka_error_is_fatal", ctypes.c_int, ctypes.c_void_p)
_error_is_retriable = _function("rd_kafka_error_is_retriable", ctypes.c_int, ctypes.c_void_p)
_error_requires_abort = _function("rd_kafka_error_txn_requires_abort", ctypes.c_int, ctypes.c_void_p)
_error_destroy = _function("rd_kafka_error_destroy", None, ctypes.c_void_p)


def committed(consumer: Consumer, partitions: Sequence[tuple[str, int]], *, timeout_s: float) -> list[Position]:
    """Return what the consumer's group has committed for each (topic, partition), in their order.

    The consumer's thread calls this; it blocks up to `timeout_s` seconds, without the interpreter's lock.

    Raises:
        KafkaException: the coordinator does not answer, or refuses a partition.
        RuntimeError: the consumer is closed.
    """
    handle = _handle(consumer)
    with _listed([Position(topic, partition, 0, "") for topic, partition in partitions], handle) as found:
        _check(_committed(handle, found, round(timeout_s * 1000)))
        return [_read(found.contents.elements[index]) for index in range(found.contents.count)]


def commit_async(consumer: Consumer, positions: Sequence[Position]) -> None:
    """Send a commit; the consumer's `on_commit` hears of it from a later `poll` or `consume`. The consumer's thread.

    Raises:
        KafkaException: it was not sent.
        RuntimeError: the consumer is closed.
    """
    handle = _handle(consumer)
    with _listed(positions, handle) as wanted:
        _check(_commit(handle, wanted, 1))


def commit_sync(consumer: Consumer, positions: Sequence[Position]) -> None:
    """Commit, and return once it is acknowledged; `on_commit` hears nothing of it. The consumer's thread; it may block.

    Raises:
        KafkaException: the first error, of the whole or of a partition.
        RuntimeError: the consumer is closed.
    """
    handle = _handle(consumer)
    errors: list[int] = []

    def note(_handle: int, error: int, found: Any, _opaque: int) -> None:
        count = found.contents.count if found else 0
        errors.extend([error, *(found.contents.elements[index].err for index in range(count))])

    with _listed(positions, handle) as wanted:
        _check(_commit_queue(handle, wanted, None, _OnCommit(note), None))
    _check(next(filter(None, errors), 0))


def send_offsets(producer: Producer, consumer: Consumer, positions: Sequence[Position], *, timeout_s: float) -> None:
    """Make commits part of the producer's transaction, as a member of the consumer's group in its present generation.

    Any thread, while neither client is being closed; it blocks up to `timeout_s` seconds.

    Raises:
        KafkaException: with an error that says whether it is retriable, fatal, or asks for an abort.
        RuntimeError: a client is closed.
    """
    producing, consuming = _handle(producer), _handle(consumer)
    membership = _group_metadata(consuming)
    try:
        with _listed(positions, producing) as wanted:
            error = _send_offsets(producing, wanted, membership, round(timeout_s * 1000))
    finally:
        _group_metadata_destroy(membership)
    if error:
        try:
            raise KafkaException(
                KafkaError(
                    _error_code(error),
                    _error_string(error).decode(errors="replace"),
                    fatal=bool(_error_is_fatal(error)),
                    retriable=bool(_error_is_retriable(error)),
                    txn_requires_abort=bool(_error_requires_abort(error)),
                )
            )
        finally:
            _error_destroy(error)


def _handle(consumer: Consumer | Producer) -> int:
    """Return the client's handle: the first field behind every object's header, NULL once it is closed."""
    handle = ctypes.c_void_p.from_address(id(consumer) + object.__basicsize__).value
    if handle is None:
        msg = "the client is closed"
        raise RuntimeError(msg)
    return handle


@contextmanager
def _listed(positions: Sequence[Position], handle: int) -> Generator[Any]:
    found = _list_new(len(positions))
    try:
        for position in positions:
            element = _list_add(found, position.topic.encode(), position.partition).contents
            element.offset = position.offset
            if metadata := position.metadata.encode():
                element.metadata = _allocate(handle, len(metadata))  # the list frees it
                element.metadata_size = len(metadata)
                ctypes.memmove(element.metadata, metadata, len(metadata))
        yield found
    finally:
        _list_destroy(found)


def _read(one: _Partition) -> Position:
    _check(one.err)
    metadata = ctypes.string_at(one.metadata, one.metadata_size) if one.metadata else b""
    return Position(one.topic.decode(), one.partition, one.offset, metadata.decode("ascii", "replace"))


def _check(code: int) -> None:
    if code:
        raise KafkaException(KafkaError(code))
