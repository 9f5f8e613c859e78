"""Watches the mounted file that holds the live half: a change is read, checked and applied between records."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from parallel_consumer_runtime.errors import PermanentError
from parallel_consumer_runtime.settings import LiveSettings, explain

POLL_INTERVAL_S = 0.2

_log = logging.getLogger(__name__)


def read(path: Path) -> LiveSettings:
    """Return the live half.

    Raises:
        PermanentError: the file is missing or does not fit; names the file and the field.
    """
    try:
        return LiveSettings.model_validate_json(path.read_bytes())
    except OSError as error:
        msg = f"{path}: the live settings cannot be read ({error.strerror})"
        raise PermanentError(msg) from error
    except ValidationError as error:
        msg = f"{path}: " + "; ".join(explain(error))
        raise PermanentError(msg) from error


async def watch(path: Path, current: LiveSettings, apply: Callable[[LiveSettings], None]) -> None:
    """Call `apply` with each new revision, until cancelled. A file that does not fit is logged, and the old one kept.

    A kubelet swaps a symbolic link, an editor renames: both change what `stat` says of the path. Polling costs one
    system call and works on every volume, where inotify does not.
    """
    seen = _signature(path)
    while True:
        await asyncio.sleep(POLL_INTERVAL_S)
        signature = _signature(path)
        if signature == seen or signature is None:
            continue
        seen = signature
        try:
            following = read(path)
        except PermanentError as error:
            _log.error("%s; the settings of revision %s stay", error, current.revision)
            continue
        if following.revision != current.revision:
            current = following
            apply(current)
            _log.info("live settings of revision %s applied", current.revision)


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - follows the symbolic link, and nothing else is needed
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
