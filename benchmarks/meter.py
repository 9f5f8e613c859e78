"""Measures one arm inside its own process: counts, times and costs from the first record on, then writes them once."""

import json
import os
import statistics
import time
from pathlib import Path

RESULT_ENV = "PCONSUMER_BENCH_RESULT"
WORK_MS_ENV = "PCONSUMER_BENCH_WORK_MS"
SECONDS_MAX_ENV = "PCONSUMER_BENCH_SECONDS_MAX"
RECORDS_MAX_ENV = "PCONSUMER_BENCH_RECORDS_MAX"
RECORDS_MIN = 100_000
SECONDS_MIN = 5.0
SAMPLE_EVERY = 64


class Meter:
    """Counts records until there are enough of them, or time is up; what comes later is not counted.

    An arm ends with `RECORDS_MIN` records and `SECONDS_MIN` seconds, or at the bounds that the environment sets. One
    thread uses it.
    """

    def __init__(self) -> None:
        self._result = Path(os.environ[RESULT_ENV])
        self._seconds_max = float(os.environ[SECONDS_MAX_ENV])
        self._records_max = int(os.environ[RECORDS_MAX_ENV])
        self._begun_at = 0.0
        self._cpu_at = 0.0
        self._busy_s = 0.0
        self._in_flight = 0
        self._samples: list[int] = []
        self.count = 0
        """Records handled so far."""
        self.done = False
        """The result is written."""

    def begin(self) -> float:
        """Note that a record's handling begins; return now, for `end`."""
        now = time.perf_counter()
        if not self._begun_at:
            self._begun_at, self._cpu_at = now, time.process_time()
        self._in_flight += 1
        return now

    def end(self, begun_at: float) -> None:
        """Note that a record's handling ended."""
        now = time.perf_counter()
        self._busy_s += now - begun_at
        self.add(1, now)
        self._in_flight -= 1

    def add(self, count: int, now: float) -> None:
        """Count records that are done; for arms that handle them in batches."""
        if not self._begun_at:
            self._begun_at, self._cpu_at = now, time.process_time()
        before = self.count
        self.count += count
        if before // SAMPLE_EVERY == self.count // SAMPLE_EVERY and now - self._begun_at < self._seconds_max:
            return
        self._samples.append(self._in_flight)
        elapsed_s = now - self._begun_at
        enough = self.count >= RECORDS_MIN and elapsed_s >= SECONDS_MIN
        if not self.done and (enough or self.count >= self._records_max or elapsed_s >= self._seconds_max):
            self._write(elapsed_s)

    def _write(self, elapsed_s: float) -> None:
        self.done = True
        measured = {
            "records": self.count,
            "elapsed_s": elapsed_s,
            "busy_s": self._busy_s,
            "cpu_s": time.process_time() - self._cpu_at,
            "rss_peak_bytes": _rss_peak_bytes(),
            "in_flight_median": statistics.median(self._samples),
            "in_flight_peak": max(self._samples),
        }
        written = self._result.with_suffix(".new")
        written.write_text(json.dumps(measured))
        written.rename(self._result)


def _rss_peak_bytes() -> int:
    """Return this program's peak; getrusage would tell the peak of the process that started it, if that is higher."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024
