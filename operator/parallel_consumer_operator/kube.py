"""The few calls the operator makes to the API server: plain dicts in, plain dicts out, one error tree.

Typed models would drop fields they do not know, so there are none; paths are built here, so no discovery is needed.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from kubernetes.aio import client, config, dynamic
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic.resource import Resource

from parallel_consumer_operator.api import API_VERSION_OF_KIND, PLURAL, SPARK_JOB_PLURAL
from parallel_consumer_operator.desired.naming import MANAGER, Manifest
from parallel_consumer_operator.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OperatorError,
    RefusedError,
    RetryableError,
    ServerUnavailableError,
)
from parallel_consumer_operator.untyped import as_list, at
from parallel_consumer_runtime.settings import KIND
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND

REQUEST_TIMEOUT_S = 30.0

# These parts of the client carry no types.
_dynamic_client: Any = dynamic.DynamicClient
_new_resource: Any = Resource
_config: Any = config
_PAGE = 500
_CHUNK_BYTES = 65_536
_UNREADABLE = ("unable to convert unstructured object", "failed to create typed patch object")
"""What the API server says, with status 500, of an applied object whose fields have other types than its kind's."""

_KINDS = {
    KIND: (API_VERSION_OF_KIND, PLURAL),
    SPARK_JOB_KIND: (API_VERSION_OF_KIND, SPARK_JOB_PLURAL),
    "Pod": ("v1", "pods"),
    "ConfigMap": ("v1", "configmaps"),
    "Service": ("v1", "services"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "Job": ("batch/v1", "jobs"),
    "Event": ("events.k8s.io/v1", "events"),
}


@dataclass(frozen=True, slots=True)
class Key:
    """Names one object of one of our kinds."""

    namespace: str
    name: str
    kind: str = KIND

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Kube(Protocol):
    """What reconciling needs of an API server. Each call ends within REQUEST_TIMEOUT_S or raises an OperatorError."""

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return the object, None when there is none."""
        ...

    async def list(self, kind: str, namespace: str | None, selector: str = "") -> list[Manifest]:
        """Return all objects of a kind in a namespace, or in all for None, that a label selector matches."""
        ...

    async def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Apply server-side as the operator's own fields, taking them from whoever holds them. Return the result."""
        ...

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Apply the status of an object: its identity and `status`, nothing else."""
        ...

    async def annotate_pod(self, namespace: str, name: str, annotations: dict[str, str]) -> None:
        """Set annotations of a pod, leaving everything else."""
        ...

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete a pod if it is still the same; one that is gone or replaced is left alone."""
        ...

    async def create(self, manifest: Manifest) -> None:
        """Create an object. Raises ConflictError when one of its name exists."""
        ...

    async def replace(self, manifest: Manifest) -> None:
        """Replace an object of the resource version that the manifest names. Raises ConflictError when it has another."""
        ...

    async def stop_job(self, namespace: str, name: str, uid: str, annotations: dict[str, str]) -> None:
        """Suspend a Job if it is still the same, and annotate it, in one write; one that is gone is left alone."""
        ...

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete an object if it is still the same, and let what it owns go after it."""
        ...

    async def events_about(self, namespace: str, uid: str) -> Sequence[Manifest]:
        """Return the events that tell of an object."""
        ...

    async def log_tail(self, namespace: str, pod: str, container: str, *, lines: int, size_bytes: int) -> str:
        """Return the end of a container's log: its last lines, and of them what fits into the size.

        Raises NotFoundError when the pod is gone, RefusedError when the container did not start, ServerUnavailableError when
        its node does not answer.
        """
        ...


class ApiServer:
    """Kube over the asynchronous dynamic client. Belongs to the loop it was made in."""

    def __init__(self, api: client.ApiClient) -> None:
        self._client: Any = _dynamic_client(api)
        self._resources: dict[str, Any] = {kind: _resource(self._client, kind) for kind in _KINDS}

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """See Kube."""
        try:
            return await self._call(f"get {kind} {namespace}/{name}", kind, "get", name=name, namespace=namespace)
        except NotFoundError:
            return None

    async def list(self, kind: str, namespace: str | None, selector: str = "") -> list[Manifest]:
        """See Kube."""
        found: list[Manifest] = []
        token: str | None = None
        while True:
            page = await self._call(
                f"list {kind} in {namespace or 'all namespaces'}",
                kind,
                "get",
                namespace=namespace,
                label_selector=selector or None,
                limit=_PAGE,
                _continue=token,
            )
            found += as_list(page.get("items")) or []
            token = at(page, "metadata", "continue")
            if not token:
                return found

    async def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """See Kube."""
        return await self._call(
            f"apply {_named(manifest)}",
            manifest["kind"],
            "server_side_apply",
            body=manifest,
            namespace=manifest["metadata"]["namespace"],
            field_manager=MANAGER,
            force_conflicts=True,
            dry_run="All" if dry_run else None,
        )

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """See Kube."""
        metadata = manifest["metadata"]
        path = self._resources[manifest["kind"]].path(name=metadata["name"], namespace=metadata["namespace"])
        async with translated(f"apply the status of {_named(manifest)}"):
            answer: Manifest = await self._client.request(
                "patch",
                f"{path}/status",
                body=manifest,
                field_manager=MANAGER,
                force_conflicts=True,
                content_type="application/apply-patch+yaml",
                serializer=_plain,
                _request_timeout=REQUEST_TIMEOUT_S,
            )
            return answer

    async def annotate_pod(self, namespace: str, name: str, annotations: dict[str, str]) -> None:
        """See Kube."""
        await self._call(
            f"annotate Pod {namespace}/{name}",
            "Pod",
            "patch",
            name=name,
            namespace=namespace,
            body={"metadata": {"annotations": annotations}},
            content_type="application/merge-patch+json",
            field_manager=MANAGER,
        )

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """See Kube."""
        await self.delete("Pod", namespace, name, uid)

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """See Kube."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if kind != "Pod":
            body["propagationPolicy"] = "Background"
        try:
            await self._call(
                f"delete {kind} {namespace}/{name}", kind, "delete", name=name, namespace=namespace, body=body
            )
        except (NotFoundError, ConflictError):
            return

    async def create(self, manifest: Manifest) -> None:
        """See Kube."""
        namespace = manifest["metadata"]["namespace"]
        await self._call(f"create {_named(manifest)}", manifest["kind"], "create", body=manifest, namespace=namespace)

    async def replace(self, manifest: Manifest) -> None:
        """See Kube."""
        metadata = manifest["metadata"]
        await self._call(
            f"replace {_named(manifest)}",
            manifest["kind"],
            "replace",
            body=manifest,
            name=metadata["name"],
            namespace=metadata["namespace"],
        )

    async def stop_job(self, namespace: str, name: str, uid: str, annotations: dict[str, str]) -> None:
        """See Kube."""
        try:
            await self._call(
                f"suspend Job {namespace}/{name}",
                "Job",
                "patch",
                name=name,
                namespace=namespace,
                # The uid is a precondition: another Job of that name is none of ours.
                body={"metadata": {"uid": uid, "annotations": annotations}, "spec": {"suspend": True}},
                content_type="application/merge-patch+json",
                field_manager=MANAGER,
            )
        except NotFoundError:
            return

    async def events_about(self, namespace: str, uid: str) -> Sequence[Manifest]:
        """See Kube."""
        page = await self._call(
            f"list Event in {namespace}",
            "Event",
            "get",
            namespace=namespace,
            field_selector=f"regarding.uid={uid}",
            limit=_PAGE,
        )
        return as_list(page.get("items")) or []

    async def log_tail(self, namespace: str, pod: str, container: str, *, lines: int, size_bytes: int) -> str:
        """See Kube."""
        # The server's own limitBytes would cut the end off, which is what is wanted: lines bound what is sent.
        query = [("container", container), ("tailLines", str(lines))]
        async with translated(f"read the log of Pod {namespace}/{pod}"):
            answer = await self._client.request(
                "get",
                f"/api/v1/namespaces/{namespace}/pods/{pod}/log",
                query_params=query,
                header_params={"Accept": "text/plain, */*"},
                serialize=False,
                _request_timeout=REQUEST_TIMEOUT_S,
            )
            return await _end_of(answer.content, size_bytes)

    async def _call(self, what: str, kind: str, verb: str, **arguments: Any) -> Manifest:
        async with translated(what):
            call = getattr(self._client, verb)
            answer: Manifest = await call(
                self._resources[kind], serializer=_plain, _request_timeout=REQUEST_TIMEOUT_S, **arguments
            )
            return answer


@asynccontextmanager
async def connect(kubeconfig: Path | None) -> AsyncGenerator[ApiServer]:
    """Connect with a kubeconfig, or as the pod's service account without one; closed on leaving.

    Raises:
        OperatorError: when neither is there or can be read.
    """
    settings = client.Configuration()
    try:
        if kubeconfig is not None:
            await _config.load_kube_config(str(kubeconfig), client_configuration=settings, persist_config=False)
        else:
            _config.load_incluster_config(client_configuration=settings)
    except (config.ConfigException, OSError) as error:
        raise OperatorError(f"no way to reach the API server: {error}") from error
    async with client.ApiClient(settings) as api:
        yield ApiServer(api)


@asynccontextmanager
async def translated(what: str) -> AsyncGenerator[None]:
    """Turn the client's errors into ours, saying what was tried."""
    try:
        yield
    except ApiException as error:
        raise _translate(what, error) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ServerUnavailableError(f"{what}: {type(error).__name__}: {error}") from error


def _translate(what: str, error: ApiException) -> OperatorError:
    status = _status(error)
    message = f"{what}: {_reason(error)}"
    if status == 404:  # noqa: PLR2004 - HTTP's own numbers
        return NotFoundError(message)
    if status == 409:  # noqa: PLR2004 - as above
        return ConflictError(message)
    if status in {400, 413, 422} or (status == 500 and any(words in message for words in _UNREADABLE)):  # noqa: PLR2004 - as above
        return RefusedError(message)
    if status in {401, 403}:
        return ForbiddenError(message)
    if status == 410:  # noqa: PLR2004 - an expired list token: listing again helps
        return RetryableError(message)
    return ServerUnavailableError(message)


def _status(error: Any) -> int:
    return int(error.status or 0)


def _reason(error: Any) -> str:
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
    try:
        message = at(json.loads(body), "message")
    except ValueError:
        message = None
    return message if isinstance(message, str) else f"{error.status} {error.reason}"


async def _end_of(stream: Any, size_bytes: int) -> str:
    """Read to the end and keep no more than the last bytes: a line may be of any length."""
    kept = b""
    async for chunk in stream.iter_chunked(_CHUNK_BYTES):
        kept = (kept + chunk)[-size_bytes:]
    return str(kept.decode(errors="replace"))


def _plain(_client: object, data: Any) -> Any:
    return data


def _resource(dynamic_client: Any, kind: str) -> Any:
    api_version, plural = _KINDS[kind]
    group, _, version = api_version.rpartition("/")
    return _new_resource(
        prefix="apis" if group else "api",
        group=group,
        api_version=version,
        kind=kind,
        namespaced=True,
        name=plural,
        client=dynamic_client,
    )


def _named(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']} {metadata['namespace']}/{metadata.get('name', metadata.get('generateName'))}"
