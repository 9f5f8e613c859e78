"""Records per second and efficiency of this runtime beside a plain consume loop and a bare consumer, on a real broker.

`make bench`, or `python -m benchmarks.throughput [--seconds 30] [--records 600000] [--dry]`. One topic of 4 partitions,
100-byte values, 10,000 keys; each arm is a process of its own with a fresh group; the clock runs from the first record
handled. Every row is kept in docs/benchmarks.csv with its commit; docs/benchmarks.md shows the last run.

Efficiency is records per second over (concurrency / nominal work); occupancy is the time measured in handlers over
(concurrency x elapsed), which tells timers that overshoot from slots that stand empty.
"""

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.meter import RECORDS_MAX_ENV, RESULT_ENV, SECONDS_MAX_ENV, WORK_MS_ENV
from parallel_consumer_runtime.settings import ParallelConsumerSpec
from tests.support.kafka import KAFKA_VERSION, KafkaBroker, why_unavailable
from tests.support.members import Members, spec_for
from tests.support.processes import REPOSITORY, TiedProcess
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

PARTITIONS = 4
KEYS = 10_000
VALUE = b"x" * 100
WORKS_MS = (0.0, 2.0, 10.0)
CONCURRENCIES = (16, 100)
START_S = 30.0
CSV = REPOSITORY / "docs" / "benchmarks.csv"
REPORT = REPOSITORY / "docs" / "benchmarks.md"
RUNTIME, LOOP, BARE = "parallel-consumer", "plain loop", "bare consumer"
RESULTS, EXACTLY_ONCE = "parallel-consumer with results", "the same exactly once"
RESULTS_TOPIC = "bench-results"
RESULTS_WORK_MS, RESULTS_CONCURRENCY = 2.0, 100


class Arm(NamedTuple):
    """One row to measure."""

    name: str
    work_ms: float
    concurrency: int


@dataclass(frozen=True)
class Row:
    """One arm, measured."""

    commit: str
    day: str
    arm: str
    work_ms: float
    concurrency: int
    records: int
    elapsed_s: float
    records_per_s: int
    efficiency: float | None
    occupancy: float | None
    in_flight_median: float
    in_flight_peak: int
    cpu_s_per_100k: float
    rss_peak_mib: int


def arms() -> list[Arm]:
    """Return the rows in the order in which they are measured: rivals beside each other."""
    rows: list[Arm] = []
    for work_ms in WORKS_MS:
        rows.append(Arm(LOOP, work_ms, 1))
        rows += [Arm(RUNTIME, work_ms, concurrency) for concurrency in CONCURRENCIES]
        if not work_ms:
            rows.append(Arm(BARE, work_ms, 1))
    rows += [Arm(name, RESULTS_WORK_MS, RESULTS_CONCURRENCY) for name in (RESULTS, EXACTLY_ONCE)]
    return rows


def _spec(kafka: KafkaBroker, topic: str, group: str, arm: Arm) -> ParallelConsumerSpec:
    """Return the spec of one of this runtime's arms."""
    if arm.name == RUNTIME:
        handler, results, more = "work", None, {}
    else:
        handler, results = "work_with_result", RESULTS_TOPIC
        more = {"commitMode": "Transactional"} if arm.name == EXACTLY_ONCE else {}
    spec = spec_for(
        kafka.bootstrap, topic, group, handler, results=results, concurrency={"fixed": arm.concurrency}, **more
    )
    return spec.model_copy(update={"handler": f"benchmarks.handlers:{handler}"})


def measure(kafka: KafkaBroker, topic: str, arm: Arm, folder: Path, bounds: Mapping[str, str]) -> dict[str, float]:
    """Run one arm and return what its meter wrote."""
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    group = f"bench-{uuid.uuid4().hex[:8]}"
    variables = {
        **bounds,
        RESULT_ENV: str(result),
        WORK_MS_ENV: str(arm.work_ms),
        "PYTHONPATH": str(REPOSITORY),
        "LOG_LEVEL": "WARNING",
    }
    timeout_s = float(bounds[SECONDS_MAX_ENV]) + START_S
    if arm.name in {RUNTIME, RESULTS, EXACTLY_ONCE}:
        with Members("bench", _spec(kafka, topic, group, arm), folder) as members:
            process = members.start(0, extra=variables).process
            _wait(process, result, timeout_s)
    else:
        name = "loop" if arm.name == LOOP else "bare"
        command = [sys.executable, "-m", "benchmarks.arms", name, kafka.bootstrap, topic, group]
        with TiedProcess(command, folder / "arm.log", env={**os.environ, **variables}) as process:
            _wait(process, result, timeout_s)
    measured: dict[str, float] = json.loads(result.read_text())
    return measured


def _wait(process: TiedProcess, result: Path, timeout_s: float) -> None:
    def written() -> bool:
        if not result.exists() and process.exit_code is not None:
            raise AssertionError(f"the arm ended with {process.exit_code}:\n{process.tail()}")
        return result.exists()

    wait_until(written, "the arm is measured", timeout_s, every_s=0.25, state=process.tail)


def to_row(arm: Arm, measured: Mapping[str, float], commit: str) -> Row:
    """Turn a measurement into figures."""
    rate = measured["records"] / measured["elapsed_s"]
    slots = arm.concurrency * measured["elapsed_s"]
    return Row(
        commit=commit,
        day=time.strftime("%Y-%m-%d"),
        arm=arm.name,
        work_ms=arm.work_ms,
        concurrency=arm.concurrency,
        records=int(measured["records"]),
        elapsed_s=round(measured["elapsed_s"], 2),
        records_per_s=round(rate),
        efficiency=round(rate * arm.work_ms / 1000 / arm.concurrency, 3) if arm.work_ms else None,
        occupancy=round(measured["busy_s"] / slots, 3) if arm.work_ms else None,
        in_flight_median=measured["in_flight_median"],
        in_flight_peak=int(measured["in_flight_peak"]),
        cpu_s_per_100k=round(measured["cpu_s"] / measured["records"] * 100_000, 2),
        rss_peak_mib=round(measured["rss_peak_bytes"] / 1024**2),
    )


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| work | concurrency | arm | records/s | efficiency | occupancy | in flight | CPU s | peak RSS |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        efficiency, occupancy = ("" if value is None else f"{value:.3f}" for value in (row.efficiency, row.occupancy))
        lines.append(
            f"| {row.work_ms:g} ms | {row.concurrency} | {row.arm} | {row.records_per_s:,} | {efficiency} | {occupancy} "
            f"| {row.in_flight_median:g} to {row.in_flight_peak} | {row.cpu_s_per_100k} | {row.rss_peak_mib} MiB |"
        )
    return "\n".join(lines)


def keep(rows: list[Row], seconds: float) -> None:
    """Append the rows to the CSV and write the report of this run."""
    fields = list(Row.__dataclass_fields__)
    fresh = not CSV.exists()
    with CSV.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows(vars(row) for row in rows)
    REPORT.write_text(
        f"""# Benchmarks

Written by `make bench` on {rows[0].day} at commit {rows[0].commit}: Apache Kafka {KAFKA_VERSION} beside the arms on {os.cpu_count()} cores
({platform.machine()}), Python {platform.python_version()}. One topic of {PARTITIONS} partitions, {len(VALUE)}-byte values, {KEYS:,} keys, one
process per arm with a fresh group; the clock runs from the first record handled, over at least 100,000 records or
{seconds:g} s. Handlers wait with `asyncio.sleep` (the plain loop with `time.sleep`). Machines are noisy: compare rows of one run.

{table(rows)}

Efficiency is records per second over (concurrency / nominal work). Occupancy is the time measured in handlers over
(concurrency x elapsed): where it is higher than the efficiency, timers overshoot. In flight: median to peak. CPU
seconds are per 100,000 records, of the arm's process alone. The last two rows produce one result for each record, at least
once and in transactions of 100 ms: their ratio is what exactly once costs. Every row of every run is in
`docs/benchmarks.csv`.
"""
    )


def main() -> int:
    """Measure everything, print the table, keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="the longest time per arm")
    parser.add_argument("--records", type=int, default=1_000_000, help="records in the topic")
    parser.add_argument("--dry", action="store_true", help="print the table, keep nothing")
    arguments = parser.parse_args()
    if reason := why_unavailable():
        print(f"error: {reason}", file=sys.stderr)
        return 1
    described = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    commit = subprocess.run(described, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout.strip()
    bounds = {SECONDS_MAX_ENV: str(arguments.seconds), RECORDS_MAX_ENV: str(int(arguments.records * 0.95))}
    rows: list[Row] = []
    with KafkaBroker() as kafka, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        kafka.create_topic("bench", PARTITIONS)
        kafka.create_topic(RESULTS_TOPIC, PARTITIONS)
        began = time.monotonic()
        Traffic(kafka.bootstrap, "bench").send((f"key-{n % KEYS}", VALUE) for n in range(arguments.records))
        print(f"{arguments.records:,} records produced in {time.monotonic() - began:.0f} s", flush=True)
        for arm in arms():
            row = to_row(arm, measure(kafka, "bench", arm, Path(folder), bounds), commit)
            rows.append(row)
            print(f"{arm.name}, {arm.work_ms:g} ms x {arm.concurrency}: {row.records_per_s:,}/s", flush=True)
    print(table(rows))
    if not arguments.dry:
        keep(rows, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
