"""kubectl, as a user types it, with answers as JSON and waits that have an end."""

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

from tests.support.waiting import wait_until

KUBECTL_TIMEOUT_S = 60.0


class KubectlError(RuntimeError):
    """kubectl ended with an error; holds what it said."""


def kubectl(*arguments: str, stdin: str | None = None, namespace: str | None = None) -> str:
    """Run kubectl and return its output.

    Raises:
        KubectlError: it ended with an error.
    """
    scope = [] if namespace is None else ["--namespace", namespace]
    ran = subprocess.run(
        ["kubectl", *scope, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=KUBECTL_TIMEOUT_S,
        check=False,
        env=os.environ,
    )
    if ran.returncode:
        raise KubectlError(ran.stderr.strip() or ran.stdout.strip())
    return ran.stdout


def get(kind: str, name: str, namespace: str | None = None) -> Any:
    """Return one object; None when it does not exist."""
    found = kubectl("get", kind, name, "--ignore-not-found", "--output=json", namespace=namespace)
    return json.loads(found) if found.strip() else None


def items(kind: str, namespace: str | None = None, selector: str = "") -> list[Any]:
    """Return the objects of a kind, perhaps only those with some labels."""
    narrowed = [f"--selector={selector}"] if selector else []
    answer = json.loads(kubectl("get", kind, "--output=json", *narrowed, namespace=namespace))
    return list(answer["items"])


def apply(manifest: dict[str, Any], namespace: str | None = None) -> None:
    """Apply one object; several as `items` of a List."""
    kubectl("apply", "--filename=-", stdin=json.dumps(manifest), namespace=namespace)


def wait_for(
    kind: str, name: str, what: str, probe: Callable[[Any], object], *, timeout_s: float, namespace: str | None = None
) -> Any:
    """Return the object once `probe` says yes to it.

    Raises:
        ConditionTimeoutError: not in time; holds the object's status.
    """
    seen: dict[str, Any] = {}

    def look() -> Any:
        found = get(kind, name, namespace)
        if found is None:
            return None
        seen["status"] = found.get("status")
        return found if probe(found) else None

    return wait_until(look, f"{kind}/{name}: {what}", timeout_s, every_s=0.1, state=lambda: seen)
