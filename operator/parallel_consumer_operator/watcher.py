"""Kopf, wiring only: an event of our kinds, or of a child, becomes a key. Runs in a thread and loop of its own.

Events are edges and some are lost, so they decide nothing; the resync covers the rest. No handler of Kopf's that would
mark the user's object is used. When Kopf ends, for whatever reason, the one who started it is told: a blind operator must
not look well.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import kopf

from parallel_consumer_operator.api import PLURAL, SPARK_JOB_PLURAL
from parallel_consumer_operator.desired.naming import MANAGER, Labels
from parallel_consumer_operator.kube import Key
from parallel_consumer_operator.settings import OperatorSettings
from parallel_consumer_runtime.settings import API_GROUP, API_VERSION, KIND
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND

OWNERS = ((PLURAL, KIND), (SPARK_JOB_PLURAL, SPARK_JOB_KIND))
CHILDREN = (
    ("", "v1", "pods"),
    ("", "v1", "configmaps"),
    ("", "v1", "services"),
    ("apps", "v1", "statefulsets"),
    ("batch", "v1", "jobs"),
)
STOP_TIMEOUT_S = 10.0

_log = logging.getLogger(__name__)
# Kopf's registration functions are typed for its decorators' every use at once.
_kopf: Any = kopf


class Watcher:
    """Watches from `start` until `stop`.

    Args:
        settings: which namespaces.
        on_key: told of each key, on Kopf's thread; must not block.
        on_end: told once when watching ended, on Kopf's thread, with the reason.
    """

    def __init__(
        self, settings: OperatorSettings, on_key: Callable[[Key], None], on_end: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._on_key = on_key
        self._on_end = on_end
        self._stop = threading.Event()
        self.ready = threading.Event()
        """Set when the watch streams are open."""
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End watching. Twice is fine."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        reason = "watching ended"
        try:
            asyncio.run(
                _kopf.operator(
                    registry=self._registry(),
                    settings=_kopf_settings(),
                    # Kopf would name itself after the user, and a container's user need not have a name.
                    identity=socket.gethostname(),
                    standalone=True,
                    clusterwide=not self._settings.namespaces,
                    namespaces=self._settings.namespaces,
                    stop_flag=self._stop,
                    ready_flag=self.ready,
                )
            )
        except Exception as error:  # noqa: BLE001 - whatever it was, the process must end with it
            _log.exception("watching failed")
            reason = f"watching failed: {error!r}"
        self._on_end(reason)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        _kopf.on.login(registry=registry)(self._login)
        for plural, kind in OWNERS:
            _kopf.on.event(API_GROUP, API_VERSION, plural, param=kind, registry=registry)(self._on_owner)
        for group, version, plural in CHILDREN:
            labels = {Labels.MANAGED_BY: MANAGER}
            _kopf.on.event(group, version, plural, labels=labels, registry=registry)(self._on_child)
        return registry

    def _login(self, **arguments: Any) -> Any:
        if self._settings.kubeconfig is None:
            return _kopf.login_with_service_account(**arguments)
        return _kopf.login_with_kubeconfig(**arguments)

    async def _on_owner(self, namespace: str | None, name: str | None, param: Any, **_: Any) -> None:
        if namespace is not None and name is not None:
            self._on_key(Key(namespace, name, str(param)))

    async def _on_child(self, namespace: str | None, labels: Any, **_: Any) -> None:
        for label, kind in ((Labels.NAME, KIND), (Labels.SPARK_JOB, SPARK_JOB_KIND)):
            owner = labels.get(label)
            if namespace is not None and owner:
                self._on_key(Key(namespace, owner, kind))


def _kopf_settings() -> Any:
    settings: Any = kopf.OperatorSettings()
    settings.posting.enabled = False
    # Our CRD is there before us, or we end; looking for others would need rights on all CRDs.
    settings.scanning.disabled = True
    settings.watching.chunk_size = 500
    for _, _, plural in CHILDREN:
        settings.watching.label_selectors[plural] = f"{Labels.MANAGED_BY}={MANAGER}"
    settings.process.ultimate_exiting_timeout = None
    return settings
