"""Reads data whose shape nobody has checked: what a user wrote into free-form fields, what the API server returned."""

from typing import Any, TypeGuard


def as_map(value: Any) -> dict[str, Any] | None:
    """Return the value when it is a JSON object, else None."""
    return value if _is_map(value) else None


def as_list(value: Any) -> list[Any] | None:
    """Return the value when it is a JSON list, else None."""
    return value if _is_list(value) else None


def at(value: Any, *path: str) -> Any:
    """Return what stands at the path, None where anything on the way is missing or is no object."""
    for part in path:
        value = (as_map(value) or {}).get(part)
    return value


def _is_map(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
