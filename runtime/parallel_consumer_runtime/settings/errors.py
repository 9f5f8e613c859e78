"""Turns validation errors into one sentence per field: the path as the user wrote it, what is wrong, what to do."""

from pydantic import ValidationError


def explain(error: ValidationError, root: str = "") -> list[str]:
    """Return one line per problem, `spec.kafka.topics: …`, in the order of the fields.

    Args:
        error: what pydantic raised.
        root: put before each path, such as `spec`.
    """
    return [f"{_path(root, problem['loc'])}: {_reason(problem['type'], problem['msg'])}" for problem in error.errors()]


def _path(root: str, location: tuple[int | str, ...]) -> str:
    path = root
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path or "manifest"


def _reason(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "unknown field; remove it or correct its spelling"
    if kind == "missing":
        return "is required; add it"
    return message.removeprefix("Value error, ")
