"""A broker that is away for minutes must not fill a pod's log."""

import logging

from parallel_consumer_runtime.kafka.client_logs import LINES_PER_PERIOD, PERIOD_S, LineLimit, client_logger


def _line(text: str) -> logging.LogRecord:
    return logging.LogRecord("librdkafka.consumer", logging.ERROR, "", 0, "%s [%s]: refused", (text, "m-0"), None)


def test_few_lines_of_a_kind_pass_and_the_rest_is_counted() -> None:
    """Twenty a second become three, other kinds are not touched, and the next period says how many were left out."""
    now = 0.0
    limit = LineLimit(lambda: now)
    passed = 0
    for number in range(100):
        now = number * 0.05
        passed += bool(limit.filter(_line("FAIL")))
    assert passed == LINES_PER_PERIOD
    assert limit.filter(_line("SESSTMOUT"))
    now = PERIOD_S
    line = _line("FAIL")
    assert limit.filter(line)
    assert line.getMessage() == f"FAIL [m-0]: refused ({100 - LINES_PER_PERIOD} more such lines were left out)"


def test_a_clients_logger_has_one_limit() -> None:
    """Two clients in one process share it."""
    logger = client_logger("tests")
    assert client_logger("tests") is logger
    assert len(logger.filters) == 1
