"""Generates `crds/parallelconsumers.yaml` from the models: `python -m parallel_consumer_operator.api.crd [FOLDER]`.

The text is a function of the models alone; a test compares it with the file in the tree.
"""

import sys
from pathlib import Path

import yaml

from parallel_consumer_operator.api.parallelconsumer import PLURAL
from parallel_consumer_operator.api.rules import add_rules
from parallel_consumer_operator.api.status import ParallelConsumerStatus
from parallel_consumer_operator.api.structural import Schema, structural_schema
from parallel_consumer_runtime.settings import API_GROUP, API_VERSION, KIND, ParallelConsumerSpec

FILE_NAME = f"{PLURAL}.yaml"
SHORT_NAME = "pcon"
"""Not `pc`: that is PriorityClass's, and `kubectl delete pc` would reach it."""

_HEADER = "# Generated from the models by `make crds`; do not edit.\n"


def _column(name: str, kind: str, path: str, description: str, *, wide: bool = False) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


_COLUMNS = [
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
]


def object_schema() -> Schema:
    """Return the structural schema of the whole object, rules included."""
    status = structural_schema(ParallelConsumerStatus)
    conditions = status["properties"]["conditions"]
    conditions["x-kubernetes-list-type"] = "map"
    conditions["x-kubernetes-list-map-keys"] = ["type"]
    conditions["items"]["properties"]["lastTransitionTime"]["format"] = "date-time"
    root: Schema = {
        "type": "object",
        "description": "Drains Kafka topics with many records of each partition in flight, in key order.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema(ParallelConsumerSpec),
            "status": status,
        },
    }
    add_rules(root)
    return root


def custom_resource_definition() -> Schema:
    """Return the CustomResourceDefinition as plain data."""
    version: Schema = {
        "name": API_VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": _COLUMNS,
        "selectableFields": [{"jsonPath": ".spec.kafka.groupId"}],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "schema": {"openAPIV3Schema": object_schema()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{API_GROUP}"},
        "spec": {
            "group": API_GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": ["parallel-consumer"],
            },
            "versions": [version],
        },
    }


def render() -> str:
    """Return the file's text."""
    return _HEADER + yaml.dump(custom_resource_definition(), Dumper=_Plain, sort_keys=False, width=120)


class _Plain(yaml.SafeDumper):
    """Without anchors: shared lists are written out."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def main(arguments: list[str]) -> int:
    """Write the file into the folder named by the first argument, `crds` without one."""
    folder = Path(arguments[0] if arguments else "crds")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
