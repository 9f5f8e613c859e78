"""`spec.env` means on this machine what it means in a pod."""

import pytest

from parallel_consumer_runtime.local.environment import render_env


def test_values_refer_to_earlier_ones() -> None:
    """`$(NAME)` is an earlier variable, `$$` a dollar sign, and an unknown name stays as it is."""
    env = [
        {"name": "HOST", "value": "prices"},
        {"name": "URL", "value": "http://$(HOST)/$$(HOST)/$(LATER)"},
        {"name": "LATER", "value": "x"},
        {"name": "EMPTY"},
    ]
    assert render_env(env, {}) == (
        {"HOST": "prices", "URL": "http://prices/$(HOST)/$(LATER)", "LATER": "x", "EMPTY": ""},
        [],
    )


def test_what_a_pod_reads_from_the_cluster_comes_from_the_shell() -> None:
    """A secret's stand-in is the variable of the same name; without it, the message says what to set."""
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]
    assert render_env(env, {"TOKEN": "t"}) == ({"TOKEN": "t"}, [])
    assert render_env(env, {})[1] == [
        "spec.env[0].valueFrom: there is no cluster to read it from; set TOKEN in this shell"
    ]


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        ({}, "spec.env[1].name: is required"),
        ({"name": "A=B"}, "spec.env[1].name: is required, without an equals sign"),
        ({"name": "POD_NAME", "value": "x"}, "spec.env[1].name: POD_NAME is set by the runtime"),
        ({"name": "A"}, "spec.env[1].name: A is there twice"),
        ({"name": "B", "value": 5}, "spec.env[1].value: must be a string"),
    ],
)
def test_a_bad_variable_is_named_by_its_place(variable: dict[str, object], problem: str) -> None:
    """Each problem begins with the field's path."""
    (found,) = render_env([{"name": "A", "value": "a"}, variable], {})[1]
    assert found.startswith(problem)
