"""Reads a ParallelConsumer from a YAML file, as strictly as the API server would, with one line per problem."""

from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from pydantic import ValidationError

from parallel_consumer_runtime.settings import API_GROUP, API_VERSION, KIND, ParallelConsumerSpec, explain

_TOP_LEVEL = {"apiVersion", "kind", "metadata", "spec", "status"}


class ManifestError(Exception):
    """The file is no usable manifest; each line names the file, the field, and what to do."""


class Manifest(NamedTuple):
    """What is needed of one object."""

    name: str
    spec: ParallelConsumerSpec


def load(path: Path) -> Manifest:
    """Return the one ParallelConsumer in the file; other documents in it are left alone.

    Raises:
        ManifestError: with one line per problem.
    """
    try:
        documents = [document for document in yaml.safe_load_all(path.read_text()) if document is not None]
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror})"
        raise ManifestError(msg) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        msg = f"{path}: not YAML: {' '.join(str(error).split())}"
        raise ManifestError(msg) from error
    ours = [cast("dict[str, Any]", d) for d in documents if isinstance(d, dict) and d.get("kind") == KIND]
    if len(ours) != 1:
        msg = f"{path}: kind: the file must hold one {KIND}, and holds {len(ours)}"
        raise ManifestError(msg)
    return _parse(path, ours[0])


def _parse(path: Path, document: dict[str, Any]) -> Manifest:
    problems: list[str] = []
    version = f"{API_GROUP}/{API_VERSION}"
    if document.get("apiVersion") != version:
        problems.append(f"apiVersion: must be {version}")
    problems += [
        f"{key}: unknown field; remove it or correct its spelling" for key in document if key not in _TOP_LEVEL
    ]
    metadata: Any = document.get("metadata")
    name: Any = cast("dict[str, Any]", metadata).get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        problems.append("metadata.name: is required; add it")
    spec: ParallelConsumerSpec | None = None
    if "spec" not in document:
        problems.append("spec: is required; add it")
    else:
        try:
            spec = ParallelConsumerSpec.model_validate(document["spec"])
        except ValidationError as error:
            problems += explain(error, "spec")
    if problems or spec is None:
        raise ManifestError("\n".join(f"{path}: {problem}" for problem in problems))
    return Manifest(str(name), spec)
