"""What a driver's log tells of its end: the application's exception, refused executors, memory."""

import re

from parallel_consumer_operator.api import LOG_TAIL_LENGTH_MAX
from parallel_consumer_operator.wording import short

LOG_LINES = 200
LOG_BYTES = 131_072
"""How much of a log is read."""

_TAIL_LINES = 30
_TRACEBACK = "Traceback (most recent call last):"
_JVM_ERROR = re.compile(r"^Exception in thread \"[^\"]*\" (.+)$")
_REFUSED = re.compile(r"(pods|configmaps|persistentvolumeclaims)\b[^\n]*?\bis forbidden: [^\n]*", re.IGNORECASE)
_EXECUTOR_LOST = ("ExecutorLostFailure", "Max number of executor failures")
_EXECUTOR_MEMORY = re.compile(r"OOMKilled|exit(?:ed with exit)? code(?: \(|: | )(?:137|52)\b")


def application_error(log: str) -> str | None:
    """Return the exception that ended the application, type and message, None when the log shows none."""
    lines = log.splitlines()
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].endswith(_TRACEBACK):
            return _exception_after(lines, number)
        if found := _JVM_ERROR.match(lines[number]):
            return short(found[1])
    return None


def executors_refused(log: str) -> str | None:
    """Return what the API server said against executors last, None when the log shows nothing of the kind."""
    found = list(_REFUSED.finditer(log))
    return short(found[-1][0].rstrip(".")) if found else None


def lost_executor_to_memory(log: str) -> bool:
    """Whether the application failed for executors that were lost, and their memory is the log's reason."""
    return any(words in log for words in _EXECUTOR_LOST) and _EXECUTOR_MEMORY.search(log) is not None


def heap_exhausted(log: str) -> bool:
    """Whether a JVM ran out of heap."""
    return "java.lang.OutOfMemoryError" in log


def log_tail(log: str) -> str:
    """Return what is kept of a log: from the last exception on, else the last lines."""
    lines = log.splitlines()
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    kept = lines[starts[-1] :][:_TAIL_LINES] if starts else lines[-_TAIL_LINES:]
    return "\n".join(kept)[-LOG_TAIL_LENGTH_MAX:]


def _exception_after(lines: list[str], traceback: int) -> str | None:
    for number in range(traceback + 1, len(lines)):
        line = lines[number]
        if line and not line[0].isspace():
            # Spark's own exceptions go on in the next line, which begins with a colon.
            more = lines[number + 1] if number + 1 < len(lines) and lines[number + 1].startswith(": ") else ""
            return short(line + more)
    return None
