"""Reads a consumer group as the broker wrote it down: the records of `__consumer_offsets`, parsed.

The admin protocol does not tell a classic group's generation, so it is read from the group's metadata record
(key version 2), which the coordinator appends whenever the group's generation, protocol or members change. A group of
the new protocol (KIP-848) has an epoch in its place (key version 3). Commits (key versions 0 and 1) lie between them, in
the order in which the coordinator took them.
"""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

COMMIT_KEYS = {0, 1}
GROUP_METADATA_KEY = 2
EPOCH_KEY = 3
MEMBERS_WITH_INSTANCE_ID = 3
VALUES_WITH_STATE_TIME = 2
VALUES_WITH_REBALANCE_TIMEOUT = 1
VALUE_VERSION_MAX = 3
COMMITS_WITH_LEADER_EPOCH = 3
COMMITS_WITH_COMPACT_STRINGS = 4


@dataclass(frozen=True)
class Member:
    """One member, as the coordinator knows it."""

    member_id: str
    instance_id: str | None
    client_id: str
    assignment: tuple[tuple[str, int], ...] = ()
    """(topic, partition) pairs, sorted."""


@dataclass(frozen=True)
class GroupRecord:
    """The last metadata record of a classic group."""

    group: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[Member, ...] = field(default=())


class CommitPlace(NamedTuple):
    """Whose commit of which partition a record holds."""

    group: str
    topic: str
    partition: int


class CommitRecord(NamedTuple):
    """One commit, as the coordinator wrote it down."""

    place: CommitPlace
    offset: int
    metadata: str


class _Reader:
    """Reads Kafka's fixed-width big-endian fields off a byte string; running short is a struct.error."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return self._fixed(">h", 2)

    def int32(self) -> int:
        return self._fixed(">i", 4)

    def int64(self) -> int:
        return self._fixed(">q", 8)

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def compact_string(self) -> str:
        length = shift = 0
        while True:
            (byte,) = self._take(1)
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return self._take(max(0, length - 1)).decode()

    def data(self) -> bytes:
        length = self.int32()
        return b"" if length < 0 else self._take(length)

    def _fixed(self, layout: str, size: int) -> int:
        (value,) = struct.unpack(layout, self._take(size))
        return int(value)

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) != size:
            raise ValueError("a group metadata record ends too early")
        self._at += size
        return piece


def group_of_key(key: bytes) -> str | None:
    """Return the group whose generation or epoch the record of this key holds; None for commits and the rest."""
    reader = _Reader(key)
    if reader.int16() not in {GROUP_METADATA_KEY, EPOCH_KEY}:
        return None
    return reader.string()


def place_of_key(key: bytes) -> CommitPlace | None:
    """Return where the record of this key is a commit; None for what is none."""
    reader = _Reader(key)
    if reader.int16() not in COMMIT_KEYS:
        return None
    return CommitPlace(reader.string() or "", reader.string() or "", reader.int32())


def parse_commit(place: CommitPlace, value: bytes) -> CommitRecord:
    """Parse a commit's value.

    Raises:
        ValueError: the version is newer than this parser, or the record is cut short.
    """
    reader = _Reader(value)
    version = _version(reader, "commit", COMMITS_WITH_COMPACT_STRINGS)
    offset = reader.int64()
    if version >= COMMITS_WITH_LEADER_EPOCH:
        reader.int32()
    compact = version >= COMMITS_WITH_COMPACT_STRINGS
    return CommitRecord(place, offset, reader.compact_string() if compact else reader.string() or "")


def parse_epoch(group: str, value: bytes) -> GroupRecord:
    """Parse the epoch of a group of the new protocol; its members are in other records."""
    reader = _Reader(value)
    reader.int16()  # version
    return GroupRecord(group=group, generation=reader.int32(), protocol=None, leader=None)


def is_epoch(key: bytes) -> bool:
    """Tell whether the record of this key belongs to a group of the new protocol."""
    return _Reader(key).int16() == EPOCH_KEY


def parse_group(group: str, value: bytes) -> GroupRecord:
    """Parse a group metadata value.

    Raises:
        ValueError: the version is newer than this parser, or the record is cut short.
    """
    reader = _Reader(value)
    version = _version(reader, "group metadata value", VALUE_VERSION_MAX)
    reader.string()  # protocol type
    generation = reader.int32()
    protocol = reader.string()
    leader = reader.string()
    if version >= VALUES_WITH_STATE_TIME:
        reader.int64()
    members = tuple(_member(reader, version) for _ in range(reader.int32()))
    return GroupRecord(group=group, generation=generation, protocol=protocol, leader=leader, members=members)


def _version(reader: _Reader, what: str, newest: int) -> int:
    version = reader.int16()
    if not 0 <= version <= newest:
        raise ValueError(f"{what} of version {version}; this parser knows up to {newest}")
    return version


def _member(reader: _Reader, version: int) -> Member:
    member_id = reader.string() or ""
    instance_id = reader.string() if version >= MEMBERS_WITH_INSTANCE_ID else None
    client_id = reader.string() or ""
    reader.string()  # client host
    if version >= VALUES_WITH_REBALANCE_TIMEOUT:
        reader.int32()
    reader.int32()  # session timeout
    reader.data()  # subscription
    return Member(member_id, instance_id, client_id, _assignment(reader.data()))


def _assignment(data: bytes) -> tuple[tuple[str, int], ...]:
    if not data:
        return ()
    reader = _Reader(data)
    reader.int16()  # version
    pairs: list[tuple[str, int]] = []
    for _ in range(reader.int32()):
        topic = reader.string() or ""
        pairs += [(topic, reader.int32()) for _ in range(reader.int32())]
    return tuple(sorted(pairs))
