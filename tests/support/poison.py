"""Handlers that record their history and do harm: whatever a record's value asks for.

Named in manifests as `tests.support.poison:on_record`; processes import it for themselves.
"""

from parallel_consumer_runtime.handlers import Context, Record
from tests.support.recording import on_record as record_async
from tests.support.recording import on_record_in_thread as record_plain
from tests.support.worker_handlers import harm_of

LARGE = b"large:"
"""Begins a value that is refused for what it is, however large."""


def _do_harm(record: Record) -> object:
    if (record.value or b"").startswith(LARGE):
        raise ValueError(f"{len(record.value or b'')} bytes are too many")
    harm = harm_of(record)
    assert harm is not None
    return harm()


def _is_harmful(record: Record) -> bool:
    return harm_of(record) is not None or (record.value or b"").startswith(LARGE)


def on_record(record: Record, context: Context) -> object:
    """Do harm, or work as long as the environment says."""
    if _is_harmful(record):
        return _do_harm(record)
    record_plain(record, context)
    return None


async def on_record_async(record: Record, context: Context) -> object:
    """Do harm, or wait as long as the environment says."""
    if _is_harmful(record):
        return _do_harm(record)
    await record_async(record, context)
    return None
