"""An event becomes the key of the object it concerns, and the key names its kind."""

import asyncio
from typing import Any

from parallel_consumer_operator.desired.naming import labels_of
from parallel_consumer_operator.desired.spark.naming import spark_labels
from parallel_consumer_operator.kube import Key
from parallel_consumer_operator.settings import OperatorSettings
from parallel_consumer_operator.watcher import OWNERS, Watcher
from parallel_consumer_runtime.settings import KIND
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND


def _keys(handler: str, **event: Any) -> list[Key]:
    keys: list[Key] = []
    watcher = Watcher(OperatorSettings(), keys.append, lambda _: None)
    asyncio.run(getattr(watcher, handler)(namespace="default", **event))
    return keys


def test_an_object_of_either_kind_is_its_own_key() -> None:
    """One of each kind may have the same name."""
    keys = [_keys("_on_owner", name="flights", param=kind) for _, kind in OWNERS]
    assert keys == [[Key("default", "flights", KIND)], [Key("default", "flights", SPARK_JOB_KIND)]]


def test_a_child_leads_to_its_owner() -> None:
    """By the label of the owner's kind."""
    assert _keys("_on_child", labels=labels_of("flights")) == [Key("default", "flights", KIND)]
    assert _keys("_on_child", labels=spark_labels("flights", "driver")) == [Key("default", "flights", SPARK_JOB_KIND)]


def test_what_is_managed_and_names_no_owner_is_nobodys() -> None:
    """Such as the operator's own Deployment's pods."""
    assert _keys("_on_child", labels={}) == []
