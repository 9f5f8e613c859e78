"""Reads a ParallelConsumer from a YAML file, as strictly as the API server would, with one line per problem."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from pydantic import ValidationError

from parallel_consumer_runtime.settings import API_GROUP, API_VERSION, KIND, ParallelConsumerSpec, explain

_TOP_LEVEL = {"apiVersion", "kind", "metadata", "spec", "status"}
_NAME_LENGTH_MAX = 52
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


class ManifestError(Exception):
    """The file is no usable manifest; each line names the file, the field, and what to do."""


class _Loader(yaml.SafeLoader):
    """Refuses a field that is written twice, where YAML would silently take the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - the base class's signature
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


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
        documents = [document for document in yaml.load_all(path.read_text(), _Loader) if document is not None]
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror})"
        raise ManifestError(msg) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that does not exist is a ValueError
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
    elif len(name) > _NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        problems.append(
            f"metadata.name: at most {_NAME_LENGTH_MAX} lower-case letters, digits and dashes, beginning with a letter"
        )
    spec: ParallelConsumerSpec | None = None
    if "spec" not in document:
        problems.append("spec: is required; add it")
    else:
        try:
            spec = ParallelConsumerSpec.read(document["spec"])
        except ValidationError as error:
            problems += explain(error, "spec")
        except (TypeError, ValueError) as error:
            problems.append(f"spec: not plain data: {error}")
    if problems or spec is None:
        raise ManifestError("\n".join(f"{path}: {problem}" for problem in problems))
    return Manifest(str(name), spec)
