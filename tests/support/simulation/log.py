"""One partition's log, for one life of its topic: records, holes, where it begins; and what is true of its records."""

from typing import NamedTuple

from parallel_consumer_runtime.core import PartitionKey
from parallel_consumer_runtime.handlers import Record


class Log:
    """Records by offset; None is a hole: a transaction's marker, or compacted, or older than the log's start."""

    __slots__ = (
        "checked",
        "done",
        "key",
        "life",
        "mistaken",
        "settled",
        "settled_epoch",
        "settlements",
        "slots",
        "start",
    )

    def __init__(self, key: PartitionKey, life: int = 0) -> None:
        self.key = key
        self.life = b"%d" % life
        """Which of its topic's lives it is; the value of each of its records."""
        self.slots: list[Record | None] = []
        self.start = 0
        self.done: set[int] = set()
        """Offsets whose handling ended for good, in whichever process; also those that nobody can be asked for."""
        self.settled: dict[int, int] = {}
        """Done offsets of which the broker's commit tells: nobody who reads that may handle them again; by when told."""
        self.settlements = 0
        self.settled_epoch = 0
        """Raised when `settled` shrank."""
        self.mistaken = 0
        """Below it, a reader may take offsets for those of the log that was here before: nothing tells the two apart."""
        self.checked = 0
        """Below it, every record is known to be done."""

    @property
    def end(self) -> int:
        """The next offset: the high watermark."""
        return len(self.slots)

    @property
    def needed(self) -> int:
        """The lowest committed offset that says that every record is done."""
        slots = self.slots
        for offset in range(len(slots) - 1, -1, -1):
            if slots[offset] is not None:
                return offset + 1
        return 0

    def append(self, key: bytes | None) -> None:
        """Produce one record."""
        self.slots.append(Record(self.key.topic, self.key.partition, len(self.slots), key, self.life, -1, ()))

    def remove(self, offset: int) -> None:
        """Compact one record away."""
        self.slots[offset] = None

    def retain_from(self, start: int) -> None:
        """Let retention delete everything below an offset."""
        self.slots[self.start : start] = [None] * (start - self.start)
        self.start = start

    def in_range(self, position: int) -> int:
        """Return where a consumer reads: auto.offset.reset is earliest."""
        return position if self.start <= position <= len(self.slots) else self.start

    def fetch(self, position: int, count: int) -> "tuple[Fetched, int]":
        """Return up to so many records, and the position after them."""
        slots, records, end = self.slots, list[Record](), len(self.slots)
        while position < end and len(records) < count:
            record = slots[position]
            position += 1
            if record is not None:
                records.append(record)
        return Fetched(self, records), position

    def undone(self) -> list[int]:
        """Return the offsets of records that nobody has done yet."""
        done = self.done
        return [offset for offset, record in enumerate(self.slots) if record is not None and offset not in done]

    def unsettle(self, above: int) -> None:
        """What commits told of offsets from here on is gone from the broker."""
        self.settled_epoch += 1
        self.settled = {offset: told for offset, told in self.settled.items() if offset < above}


class Fetched(NamedTuple):
    """What one partition gave to a batch."""

    log: Log
    records: list[Record]
