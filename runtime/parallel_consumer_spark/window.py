"""A window: which offsets of which partitions one run is about, as its file says it. Immutable, checked when it is made."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

from parallel_consumer_spark.errors import WindowError

WINDOW_ENV = "PARALLEL_CONSUMER_WINDOW"
ATTEMPT_ENV = "PARALLEL_CONSUMER_ATTEMPT"
VERSION = 1
SOURCES = ("Input", "Results", "DeadLetters")
ON_DATA_LOSS = ("Fail", "Skip")
_OFFSET_MAX = 2**63 - 1


@dataclass(frozen=True)
class PartitionRange:
    """Offsets `[start, end)` of one partition."""

    partition: int
    start: int
    end: int

    @property
    def offsets(self) -> int:
        """How many offsets it holds."""
        return self.end - self.start


@dataclass(frozen=True)
class TopicRange:
    """Offsets of one topic."""

    name: str
    topic_id: str | None
    """Kafka's base64 form; None checks nothing."""
    partitions: tuple[PartitionRange, ...]


@dataclass(frozen=True)
class Window:
    """What one run is about.

    Raises:
        WindowError: `from_file` and `from_json` name the field that is wrong.
    """

    consumer: str
    entry: str
    sequence: int
    source: str
    topics: tuple[TopicRange, ...]
    bootstrap_servers: str
    kafka_config: Mapping[str, str] = field(default_factory=dict[str, str])
    """librdkafka's names; never secrets themselves."""
    on_data_loss: str = "Fail"
    namespace: str = ""
    consumer_uid: str = ""

    @property
    def offsets(self) -> int:
        """How many offsets it holds; aborted records and markers count."""
        return sum(part.offsets for topic in self.topics for part in topic.partitions)

    @property
    def identity(self) -> dict[str, Any]:
        """What two runs over the same window have in common, whatever became of the log meanwhile."""
        return {
            "consumer": self.consumer,
            "namespace": self.namespace,
            "consumerUid": self.consumer_uid,
            "entry": self.entry,
            "sequence": self.sequence,
            "source": self.source,
            "topics": topics_json(self.topics),
        }

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read the file that the environment names."""
        path = environment.get(WINDOW_ENV)
        if not path:
            raise WindowError(f"the environment variable {WINDOW_ENV} is not set: give the window's file with --window")
        return cls.from_file(Path(path))

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a window's file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise WindowError(f"the window's file {path} cannot be read: {error}") from error
        try:
            return cls.from_json(text)
        except WindowError as error:
            raise WindowError(f"{path}: {error}") from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a window's text."""
        try:
            loaded: object = json.loads(text)
        except ValueError as error:
            raise WindowError(f"no JSON: {error}") from error
        told = _Fields(loaded, "")
        if (version := told.whole("version", 0)) != VERSION:
            raise WindowError(
                f"version is {version}, and this library reads {VERSION}: use the library of the operator's release"
            )
        kafka = _Fields(told.get("kafka"), "kafka.")
        topics = tuple(_topic(one, f"topics[{n}].") for n, one in enumerate(told.items("topics")))
        names = [topic.name for topic in topics]
        if twice := {name for name in names if names.count(name) > 1}:
            raise WindowError(f"topics: {min(twice)} is there twice")
        return cls(
            consumer=told.text("consumer"),
            entry=told.text("entry"),
            sequence=told.whole("sequence", 0),
            source=told.word("source", SOURCES),
            topics=topics,
            bootstrap_servers=kafka.text("bootstrapServers"),
            kafka_config=kafka.texts("config"),
            on_data_loss=told.word("onDataLoss", ON_DATA_LOSS, "Fail"),
            namespace=told.text("namespace", ""),
            consumer_uid=told.text("consumerUid", ""),
        )


def attempt(environment: Mapping[str, str] = os.environ) -> int:
    """Return which attempt of the run this is, from 1.

    Raises:
        WindowError: the environment says something that is no number.
    """
    text = environment.get(ATTEMPT_ENV, "1")
    if not (text.isascii() and text.isdigit()):
        raise WindowError(f"the environment variable {ATTEMPT_ENV} is {text!r}: give a whole number from 1")
    return int(text)


def topics_json(topics: tuple[TopicRange, ...]) -> list[dict[str, Any]]:
    """Return ranges in the form of the file, sorted, without partitions that hold nothing."""
    return [
        {
            "name": topic.name,
            "id": topic.topic_id,
            "partitions": [
                {"partition": part.partition, "start": part.start, "end": part.end}
                for part in sorted(topic.partitions, key=lambda part: part.partition)
                if part.offsets
            ],
        }
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _topic(value: object, path: str) -> TopicRange:
    told = _Fields(value, path)
    parts = tuple(_partition(one, f"{path}partitions[{n}].") for n, one in enumerate(told.items("partitions")))
    numbers = [part.partition for part in parts]
    if len(set(numbers)) != len(numbers):
        raise WindowError(f"{path}partitions: a partition is there twice")
    return TopicRange(told.text("name"), told.text("id"), parts)


def _partition(value: object, path: str) -> PartitionRange:
    told = _Fields(value, path)
    found = PartitionRange(told.whole("partition", 0), told.whole("start", 0), told.whole("end", 0))
    if found.end < found.start:
        raise WindowError(f"{path}end is {found.end}, below start {found.start}")
    return found


class _Fields:
    """The fields of one JSON object; each reader names the field that is missing or wrong."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise WindowError(f"{path.removesuffix('.') or 'the window'} is {_kind(value)}: give an object")
        self._fields = cast("dict[str, object]", value)
        self._path = path

    def get(self, name: str) -> object:
        if name not in self._fields:
            raise WindowError(f"{self._path}{name} is missing")
        return self._fields[name]

    def text(self, name: str, default: str | None = None) -> str:
        value = self._fields.get(name, default) if default is not None else self.get(name)
        if not isinstance(value, str) or (default is None and not value):
            raise WindowError(f"{self._path}{name} is {_kind(value)}: give a string that is not empty")
        return value

    def word(self, name: str, words: tuple[str, ...], default: str | None = None) -> str:
        value = self.text(name, default)
        if value not in words:
            raise WindowError(f"{self._path}{name} is {value!r}: give one of {', '.join(words)}")
        return value

    def whole(self, name: str, least: int) -> int:
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _OFFSET_MAX:
            raise WindowError(f"{self._path}{name} is {value!r}: give a whole number from {least}")
        return value

    def items(self, name: str) -> list[object]:
        value = self.get(name)
        if not isinstance(value, list):
            raise WindowError(f"{self._path}{name} is {_kind(value)}: give a list")
        return cast("list[object]", value)

    def texts(self, name: str) -> dict[str, str]:
        fields = self._fields.get(name, {})
        if not isinstance(fields, dict):
            raise WindowError(f"{self._path}{name} is {_kind(fields)}: give an object of strings")
        found = cast("dict[str, object]", fields)
        for key, value in found.items():
            if not isinstance(value, str):
                raise WindowError(f"{self._path}{name}.{key} is {_kind(value)}: give a string")
        return cast("dict[str, str]", found)


def _kind(value: object) -> str:
    return "empty" if value == "" else "null" if value is None else f"of type {type(value).__name__}"
