"""The real API server judges the corpus as the settings model does, and names the path; short name, scale, columns."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import bounds
from tests.support.cluster.kubectl import KubectlError, apply, get, kubectl
from tests.support.corpus import INVALID, VALID, Case, changed, manifest
from tests.support.fake_spark import spark_job
from tests.support.spark_corpus import SPARK_INVALID, SPARK_VALID

_AT_ONCE = 4
pytestmark = pytest.mark.usefixtures("operator")


def refusal(case: Case) -> str | None:
    """Return what the API server says against a manifest, None when it takes it; nothing is stored."""
    command = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-")
    try:
        kubectl(*command, stdin=json.dumps(case.manifest))
    except KubectlError as error:
        return str(error)
    return None


def accepts(cases: Sequence[Case]) -> None:
    """Fail unless the API server takes every manifest."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        verdicts = dict(zip([case.title for case in cases], pool.map(refusal, cases), strict=True))
    assert {title: verdict for title, verdict in verdicts.items() if verdict is not None} == {}


def refuses(cases: Sequence[Case]) -> None:
    """Fail unless the API server refuses every manifest, names the path, and says what it is to say."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        verdicts = list(zip(cases, pool.map(refusal, cases), strict=True))
    wrong = {
        case.title: said
        for case, said in verdicts
        if said is None or f"{case.path}" not in said or (case.says or "") not in said
    }
    assert wrong == {}


def test_the_server_accepts_the_valid_corpus() -> None:
    """What the settings model accepts, the schema accepts."""
    accepts(VALID)


def test_the_server_refuses_the_invalid_corpus_by_path() -> None:
    """What the settings model refuses, the schema refuses, and the message names the path of the field."""
    refuses(INVALID)


def test_every_bound_of_the_settings_is_a_bound_of_the_server() -> None:
    """At each bound of each field both accept, just beyond it both refuse, durations in the same sentence."""
    at_bounds, beyond_bounds = bounds.cases()
    accepts(at_bounds)
    refuses(beyond_bounds)


def test_the_server_judges_spark_jobs_as_the_settings_model_does() -> None:
    """The same corpus, refused by the same paths with what to do instead."""
    accepts(SPARK_VALID)
    refuses(SPARK_INVALID)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.image", "spark:2"),
        ("spec.pyFiles", ["local:///opt/app/more.zip"]),
        ("spec.sparkConf", {"spark.sql.shuffle.partitions": "9"}),
        ("spec.driver.template", {"metadata": {"labels": {"team": "x"}}}),
        ("spec.timeouts.run", "1h"),
    ],
)
def test_a_spark_job_is_one_run(namespace: str, path: str, value: object) -> None:
    """No field changes, also none that was left out; only suspend does."""
    mine = spark_job(metadata__namespace=namespace, spec__suspend=True)
    apply(mine, namespace)
    with pytest.raises(KubectlError, match=r"immutable: a SparkJob is one run"):
        apply(changed(mine, {path: value}), namespace)
    assert get("pcsj", "archive", namespace)["spec"]["suspend"] is True


def test_a_name_that_cannot_become_a_service_is_refused() -> None:
    """Pods and Services take the name; the refusal comes before any of them fails."""
    for name in ("7days", "x" * 53, "a.b"):
        said = refusal(Case(name, {"metadata.name": name}))
        assert said is not None, name
        assert "metadata.name becomes the name of a Service" in said


def test_the_group_id_cannot_be_changed(namespace: str) -> None:
    """Another group would be another position in every topic."""
    mine = manifest(metadata__namespace=namespace, spec__replicas=0)
    apply(mine, namespace)
    with pytest.raises(KubectlError, match=r"spec\.kafka\.groupId.*immutable"):
        apply(changed(mine, {"spec.kafka.groupId": "other"}), namespace)


def test_concurrency_may_change_its_way_by_apply(namespace: str) -> None:
    """No stored default stands in the way when a manifest gains, or swaps, min and max."""
    mine = manifest(metadata__namespace=namespace, spec__replicas=0)
    apply(mine, namespace)
    ways: list[dict[str, int]] = [{"min": 8, "max": 500}, {"fixed": 64}, {"min": 2, "max": 4}]
    for concurrency in ways:
        apply(changed(mine, {"spec.processing.concurrency": concurrency}), namespace)
        assert get("pcon", "orders", namespace)["spec"]["processing"]["concurrency"] == concurrency


def test_the_short_name_reaches_our_kind_and_scales_it(namespace: str) -> None:
    """`pcon` is ours; `pc` stays PriorityClass's."""
    apply(manifest(metadata__namespace=namespace, spec__replicas=0), namespace)
    assert kubectl("get", "pcon", "orders", "--output=name", namespace=namespace).strip() == (
        "parallelconsumer.parallelconsumer.io/orders"
    )
    scale = json.loads(
        kubectl(
            "get",
            "--raw",
            f"/apis/parallelconsumer.io/v1alpha1/namespaces/{namespace}/parallelconsumers/orders/scale",
        )
    )
    assert scale["spec"].get("replicas", 0) == 0
    kubectl("scale", "pcon", "orders", "--replicas=3", namespace=namespace)
    assert get("pcon", "orders", namespace)["spec"]["replicas"] == 3
    kubectl("scale", "pcon", "orders", "--replicas=0", namespace=namespace)
    assert "system-cluster-critical" in kubectl("get", "pc", "--output=name")


def test_the_columns_are_those_of_the_readme(namespace: str) -> None:
    """What `kubectl get` shows without being asked for more."""
    apply(manifest(metadata__namespace=namespace, spec__replicas=0), namespace)
    header = kubectl("get", "pcon", namespace=namespace).splitlines()[0]
    assert header.split() == ["NAME", "GROUP", "DESIRED", "READY", "CONCURRENCY", "LAG", "STATUS", "AGE"]


def test_objects_are_found_by_group(namespace: str) -> None:
    """The group id is a selectable field."""
    apply(manifest(metadata__namespace=namespace, spec__replicas=0), namespace)
    found = kubectl("get", "pcon", "--field-selector=spec.kafka.groupId=orders", "--output=name", namespace=namespace)
    none = kubectl("get", "pcon", "--field-selector=spec.kafka.groupId=x", "--output=name", namespace=namespace)
    assert (len(found.split()), len(none.split())) == (1, 0)


def test_every_field_is_explained() -> None:
    """`kubectl explain` speaks of live concurrency."""
    assert "Live" in kubectl("explain", "pcon.spec.processing.concurrency")
