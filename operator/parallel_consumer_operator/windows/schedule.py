"""When a schedule comes round: five fields as of cron, in UTC."""

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

FIELDS = 5


def check_schedule(expression: str) -> str:
    """Return the expression.

    Raises:
        ValueError: it is none.
    """
    if len(expression.split()) != FIELDS:
        raise ValueError("not a schedule of five fields, such as 0 3 * * 1")
    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        msg = f"not a schedule: {error}"
        raise ValueError(msg) from error
    return expression


def next_tick(expression: str, after: float) -> float:
    """Return the Unix time of the first tick after another."""
    return next(CronSim(expression, datetime.fromtimestamp(after, UTC))).timestamp()
