"""Words for people, from text whose length nobody has checked."""

from typing import Any

SHORT_LENGTH_MAX = 300


def short(message: Any, length_max: int = SHORT_LENGTH_MAX) -> str:
    """Return a message on one line, cut where it is too long; nothing for None."""
    text = " ".join(str(message or "").split())
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
