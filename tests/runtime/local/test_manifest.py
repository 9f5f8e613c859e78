"""A manifest that cannot be used is refused with one line per problem: the file, the field, and what to do."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from parallel_consumer_runtime.local import ManifestError, load
from parallel_consumer_runtime.settings import render_live, render_static

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights" / "consumer.yaml"


def changed(path: Path, **changes: Any) -> Path:
    """Write the example with dotted fields changed (None removes one); return the path."""
    document = yaml.safe_load(EXAMPLE.read_text())
    for name, value in changes.items():
        *folders, last = name.split("__")
        place = document
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    target = path / "consumer.yaml"
    target.write_text(yaml.safe_dump(document))
    return target


def test_a_manifest_that_contains_itself_is_refused(tmp_path: Path) -> None:
    """YAML can say that, JSON and Kubernetes cannot."""
    path = tmp_path / "consumer.yaml"
    path.write_text(EXAMPLE.read_text().replace("spec:", "spec: &it\n  template: *it", 1))
    with pytest.raises(ManifestError, match="spec: not plain data: Circular"):
        load(path)


def test_the_example_is_a_manifest() -> None:
    """The shipped example loads, and renders both halves of the settings."""
    manifest = load(EXAMPLE)
    assert manifest.name == "flights"
    assert render_static(manifest.name, manifest.spec).results_topic == "flight-delays"
    assert render_live(manifest.spec, 2).replicas == 2


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"spec__handlr": "x:y"}, "spec.handlr: unknown field"),
        ({"spec__handler": None}, "spec.handler: is required"),
        ({"spec__handler": "no colon"}, "spec.handler: "),
        ({"extra": 1}, "extra: unknown field"),
        ({"apiVersion": "v1"}, "apiVersion: must be parallelconsumer.io/v1alpha1"),
        ({"metadata": None}, "metadata.name: is required"),
        ({"metadata__name": "a/b"}, "metadata.name: at most 52 lower-case letters"),
        ({"metadata__name": "x" * 53}, "metadata.name: at most 52 lower-case letters"),
        ({"spec": None}, "spec: is required"),
        ({"kind": "Deployment"}, "kind: the file must hold one ParallelConsumer"),
        ({"spec__kafka__topicPattern": "^a"}, "spec.kafka: set either topics or topicPattern"),
        ({"spec__kafka__topics": None}, "spec.kafka: set either topics or topicPattern"),
        (
            {"spec__kafka__config": {"group.id": "x"}},
            "spec.kafka.config: 'group.id' is managed: set spec.kafka.groupId",
        ),
        ({"spec__kafka__config": {"sasl.password": "x"}}, "spec.kafka.config: 'sasl.password' is refused: secrets"),
        ({"spec__kafka__consumerConfig": {"plugin.library.paths": "x"}}, "spec.kafka.consumerConfig: "),
        (
            {"spec__processing__concurrency": {"min": 9, "max": 8}},
            "spec.processing.concurrency: min must not be greater",
        ),
        ({"spec__processing__concurrency": {"fixed": 9, "max": 8}}, "spec.processing.concurrency: set either fixed"),
        ({"spec__processing__concurrency": {"fixed": 0}}, "spec.processing.concurrency.fixed: "),
        ({"spec__processing__retry": {"maxAttempts": 3}}, "spec.processing: retry.maxAttempts needs deadLetter.topic"),
        ({"spec__processing__retry": {"initialBackoff": 5}}, "spec.processing.retry.initialBackoff: write a duration"),
        ({"spec__processing__commitInterval": "1ms"}, "spec.processing.commitInterval: must lie between"),
        ({"spec__kafka__sessionTimeout": "1s"}, "spec.kafka.sessionTimeout: must lie between"),
        ({"spec__processing__buffer": {"bytes": "64MB"}}, "spec.processing.buffer.bytes: write a size"),
        ({"spec__kafka__topics": ["a b"]}, "spec.kafka.topics[0]: "),
        ({"spec__replicas": "2"}, "spec.replicas: "),
        ({"spec__processing__commitInterval": 0.5}, "spec.processing.commitInterval: write a duration"),
        ({"spec__template": {date(2026, 1, 2): "x"}}, "spec: not plain data: "),
    ],
)
def test_a_bad_manifest_names_file_and_field(tmp_path: Path, changes: dict[str, Any], line: str) -> None:
    """Each mistake is one line that begins with the file and the field's path."""
    path = changed(tmp_path, **changes)
    with pytest.raises(ManifestError) as caught:
        load(path)
    assert any(shown.startswith(f"{path}: {line}") for shown in str(caught.value).splitlines()), caught.value


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    """Three mistakes are three lines."""
    path = changed(tmp_path, spec__handlr="x:y", spec__handler=None, extra=1)
    with pytest.raises(ManifestError) as caught:
        load(path)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: [", "not YAML"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"kind: a\nkind: b\n", "'kind' is there twice"),
        (b"a: {b: 1, b: 2}\n", "'b' is there twice"),
        (b"a: &a [*a]\n? [1, 2]\n: 3\n", "not YAML"),
        (b"at: 2013-13-45\n", "not YAML"),
        (b"[" * 5000, "not YAML"),
        (b"", "holds 0"),
    ],
)
def test_a_file_that_is_no_yaml_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    """Neither a broken nor an empty file gives a traceback."""
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(ManifestError, match=words):
        load(path)
    with pytest.raises(ManifestError, match="cannot be read"):
        load(tmp_path / "missing.yaml")


def test_only_live_fields_change_the_revision() -> None:
    """The revision names the live half: what is not live leaves it as it is."""
    spec = load(EXAMPLE).spec
    first = render_live(spec, 2).revision
    assert render_live(spec.model_copy(update={"image": "other:1"}), 2).revision == first
    paused = spec.processing.model_copy(update={"paused": True})
    assert render_live(spec.model_copy(update={"processing": paused}), 2).revision != first
