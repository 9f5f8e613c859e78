"""Generates `crds/*.yaml` from the models: `python -m parallel_consumer_operator.api.crd [FOLDER]`.

The text is a function of the models alone; a test compares it with the files in the tree.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import BaseModel

from parallel_consumer_operator.api.parallelconsumer import PLURAL
from parallel_consumer_operator.api.rules import DEFAULTS_LEFT_OUT, RULES, add_rules
from parallel_consumer_operator.api.sparkjob import SPARK_JOB_PLURAL
from parallel_consumer_operator.api.sparkjob_rules import SPARK_RULES
from parallel_consumer_operator.api.sparkjob_status import SparkJobStatus
from parallel_consumer_operator.api.status import ParallelConsumerStatus
from parallel_consumer_operator.api.structural import Schema, structural_schema
from parallel_consumer_runtime.settings import API_GROUP, API_VERSION, KIND, ParallelConsumerSpec
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND, SparkJobSpec

_HEADER = "# Generated from the models by `make crds`; do not edit.\n"


@dataclass(frozen=True, slots=True)
class Definition:
    """What a kind is to the API server."""

    kind: str
    plural: str
    short_name: str
    description: str
    spec: type[BaseModel]
    status: type[BaseModel]
    rules: dict[str, list[Schema]]
    columns: list[Schema]
    defaults_left_out: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()
    maps: dict[str, str] = field(default_factory=dict[str, str])
    """Lists of the spec whose items have a name, and what it is called: each is there once, and owned by itself."""
    subresources: Schema = field(default_factory=dict[str, object])
    """Those beside status."""

    @property
    def file_name(self) -> str:
        """The file's name in `crds/`."""
        return f"{self.plural}.yaml"


def _column(name: str, kind: str, path: str, description: str, *, wide: bool = False) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


PARALLEL_CONSUMER = Definition(
    kind=KIND,
    plural=PLURAL,
    short_name="pcon",  # not `pc`: that is PriorityClass's, and `kubectl delete pc` would reach it
    description="Drains Kafka topics with many records of each partition in flight, in key order.",
    spec=ParallelConsumerSpec,
    status=ParallelConsumerStatus,
    rules=RULES,
    defaults_left_out=DEFAULTS_LEFT_OUT,
    selectable=(".spec.kafka.groupId",),
    maps={"sparkJobs": "name"},
    subresources={
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    columns=[
        _column("Group", "string", ".spec.kafka.groupId", "The consumer group."),
        _column("Desired", "integer", ".spec.replicas", "Pods wanted."),
        _column("Ready", "integer", ".status.readyReplicas", "Pods that are members of the group and consume."),
        _column("Concurrency", "integer", ".status.concurrency", "Records that may be in flight, over all pods."),
        _column("Lag", "integer", ".status.lag", "Records not yet complete; empty while unknown."),
        _column("Status", "string", ".status.state", "The whole in one word."),
        _column("Age", "date", ".metadata.creationTimestamp", "Time since creation."),
        _column("In Flight", "integer", ".status.inFlight", "Records in flight, over all pods.", wide=True),
        _column("Revision", "string", ".status.appliedRevision", "Live settings every pod applied.", wide=True),
        _column("Handler", "string", ".spec.handler", "package.module:function.", wide=True),
    ],
)

SPARK_JOB = Definition(
    kind=SPARK_JOB_KIND,
    plural=SPARK_JOB_PLURAL,
    short_name="pcsj",
    description="One run of one PySpark application: a driver, its executors, and what became of them.",
    spec=SparkJobSpec,
    status=SparkJobStatus,
    rules=SPARK_RULES,
    selectable=(".spec.suspend",),
    columns=[
        _column("Status", "string", ".status.state", "The whole in one word."),
        _column("Attempts", "integer", ".status.attempts", "Attempts that were begun."),
        _column("Executors", "integer", ".status.executors.running", "Executors that run."),
        _column("Started", "date", ".status.startTime", "Time since the first attempt began."),
        _column("Finished", "date", ".status.completionTime", "Time since the last attempt ended."),
        _column("Age", "date", ".metadata.creationTimestamp", "Time since creation."),
        _column("Driver", "string", ".status.driver.podName", "The newest attempt's driver pod.", wide=True),
        _column("Application", "string", ".spec.mainApplicationFile", "The Python file.", wide=True),
        _column("Message", "string", ".status.message", "Why, in words.", wide=True),
    ],
)

DEFINITIONS = (PARALLEL_CONSUMER, SPARK_JOB)


def object_schema(definition: Definition) -> Schema:
    """Return the structural schema of the whole object, rules included."""
    status = structural_schema(definition.status)
    conditions = status["properties"]["conditions"]
    conditions["x-kubernetes-list-type"] = "map"
    conditions["x-kubernetes-list-map-keys"] = ["type"]
    conditions["items"]["properties"]["lastTransitionTime"]["format"] = "date-time"
    root: Schema = {
        "type": "object",
        "description": definition.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema(definition.spec),
            "status": status,
        },
    }
    for path, key in definition.maps.items():
        keyed = root["properties"]["spec"]["properties"][path]
        keyed["x-kubernetes-list-type"], keyed["x-kubernetes-list-map-keys"] = "map", [key]
    add_rules(root, definition.rules, definition.defaults_left_out)
    return root


def custom_resource_definition(definition: Definition) -> Schema:
    """Return the CustomResourceDefinition as plain data."""
    version: Schema = {
        "name": API_VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": definition.columns,
        "selectableFields": [{"jsonPath": path} for path in definition.selectable],
        "subresources": {"status": {}, **definition.subresources},
        "schema": {"openAPIV3Schema": object_schema(definition)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{API_GROUP}"},
        "spec": {
            "group": API_GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.kind.lower(),
                "shortNames": [definition.short_name],
                "categories": ["parallel-consumer"],
            },
            "versions": [version],
        },
    }


def render(definition: Definition) -> str:
    """Return the file's text."""
    return _HEADER + yaml.dump(custom_resource_definition(definition), Dumper=_Plain, sort_keys=False, width=120)


class _Plain(yaml.SafeDumper):
    """Without anchors: shared lists are written out."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def main(arguments: list[str]) -> int:
    """Write the files into the folder named by the first argument, `crds` without one."""
    folder = Path(arguments[0] if arguments else "crds")
    folder.mkdir(parents=True, exist_ok=True)
    for definition in DEFINITIONS:
        (folder / definition.file_name).write_text(render(definition), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
