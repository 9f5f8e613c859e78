"""A SparkJob's children are pure functions of its spec; its pods are restricted; what may not be set is refused by path."""

import json
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from parallel_consumer_operator.api import SparkJob
from parallel_consumer_operator.desired.naming import Manifest
from parallel_consumer_operator.desired.spark import batch_job, config_map, service, spark_refusals
from parallel_consumer_operator.desired.spark.naming import executor_prefix
from parallel_consumer_operator.desired.spark.properties import as_properties_file
from parallel_consumer_spark.window import PartitionRange, Window
from tests.support.fake_spark import spark_job


def _job(name: str = "archive", **changes: Any) -> SparkJob:
    job = SparkJob.parse(spark_job(name, metadata__uid="u-1", **changes))
    assert spark_refusals(job.spec) == []
    return job


def _batch(attempt: int = 1, failures: int = 0, **changes: Any) -> Manifest:
    job = _job(**changes)
    return batch_job(job.identity, job.spec, attempt=attempt, failures=failures, account="spark")


def _driver(**changes: Any) -> Manifest:
    found: Manifest = _batch(**changes)["spec"]["template"]["spec"]
    return found


def _properties(**changes: Any) -> dict[str, str]:
    job = _job(**changes)
    lines = config_map(job.identity, job.spec)["data"]["spark.properties"].splitlines()
    return dict(line.split("=", 1) for line in lines)


def _executor(**changes: Any) -> Manifest:
    job = _job(**changes)
    found: Manifest = json.loads(config_map(job.identity, job.spec)["data"]["executor.yaml"])
    return found


def _conf(arguments: list[str]) -> dict[str, str]:
    options = [value for option, value in pairwise(arguments) if option == "--conf"]
    return dict(option.split("=", 1) for option in options)


def test_every_child_belongs_to_the_spark_job() -> None:
    """Deleting it deletes them; a ParallelConsumer of the same name has nothing to do with them."""
    job = _job()
    for child in (config_map(job.identity, job.spec), service(job.identity), _batch()):
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("SparkJob", "u-1", True)
        assert child["metadata"]["labels"]["parallelconsumer.io/sparkjob"] == "archive"
        assert "parallelconsumer.io/name" not in child["metadata"]["labels"]


def test_the_job_never_deletes_the_driver_by_itself() -> None:
    """Neither a time to live nor a deadline: both would take the log along. One pod, never another one."""
    spec = _batch()["spec"]
    assert not {"ttlSecondsAfterFinished", "activeDeadlineSeconds"} & spec.keys()
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (0, 1, 1)
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_the_driver_runs_spark_submit_in_client_mode() -> None:
    """The application and its arguments come last, behind options that no argument can be taken for."""
    (container,) = _driver(spec__arguments=["--output", "/data"])["containers"]
    assert container["command"] == ["/opt/spark/bin/spark-submit"]
    arguments = container["args"]
    assert arguments[-3:] == ["local:///opt/app/archive.py", "--output", "/data"]
    assert arguments[:4] == [
        "--master",
        "k8s://https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)",
        "--deploy-mode",
        "client",
    ]
    conf = _conf(arguments)
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "$(PARALLEL_CONSUMER_POD_IP)"
    assert conf["spark.kubernetes.driver.pod.name"] == "$(PARALLEL_CONSUMER_DRIVER_POD_NAME)"
    fields = {
        item["name"]: item["valueFrom"]["fieldRef"]["fieldPath"] for item in container["env"] if "valueFrom" in item
    }
    assert fields == {
        "PARALLEL_CONSUMER_POD_IP": "status.podIP",
        "PARALLEL_CONSUMER_DRIVER_POD_NAME": "metadata.name",
    }


def test_the_attempt_is_in_everything_that_an_attempt_makes() -> None:
    """Names of Job and executors, labels, and the variable that the application reads."""
    job = _batch(attempt=3, failures=2)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    conf = _conf(container["args"])
    assert job["metadata"]["name"] == "archive-3"
    assert job["metadata"]["annotations"]["parallelconsumer.io/failures"] == "2"
    assert conf["spark.kubernetes.executor.podNamePrefix"] == "archive-3"
    assert conf["spark.kubernetes.executor.label.parallelconsumer.io/attempt"] == "3"
    assert conf["spark.executorEnv.PARALLEL_CONSUMER_ATTEMPT"] == "3"
    assert {"name": "PARALLEL_CONSUMER_ATTEMPT", "value": "3"} in container["env"]
    assert job["spec"]["template"]["metadata"]["labels"]["parallelconsumer.io/attempt"] == "3"


@pytest.mark.parametrize("name", ["a", "a" * 45, "a" * 52, "a-" * 22 + "b"])
def test_executor_names_fit_and_differ_between_attempts(name: str) -> None:
    """Spark takes a prefix of 47 characters at most, whatever the name and the attempt."""
    prefixes = [executor_prefix(name, attempt) for attempt in (1, 2, 99, 100)]
    assert len(set(prefixes)) == 4
    assert all(len(prefix) <= 47 and not prefix.endswith("-") and "--" not in prefix for prefix in prefixes)


def test_long_names_that_begin_alike_do_not_share_executors() -> None:
    """What is cut off is in the digest."""
    assert executor_prefix("a" * 51 + "b", 1) != executor_prefix("a" * 51 + "c", 1)


def test_pods_satisfy_the_restricted_level() -> None:
    """A namespace that enforces restricted pod security admits the driver, and the executors as well."""
    for pod in (_driver(), _executor()["spec"]):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 185
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_what_pods_may_write_hides_nothing_of_the_image() -> None:
    """Only /tmp and a working folder of its own are empty volumes."""
    for pod in (_driver(), _executor()["spec"]):
        (container,) = pod["containers"]
        empty = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
        folders = {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in empty}
        assert folders == {"/tmp", "/work"}
        assert container["workingDir"] == "/work"


def test_the_driver_has_the_operators_choice_of_account_and_executors_no_token() -> None:
    """Who writes a SparkJob does not choose whose rights its code has."""
    assert _driver()["serviceAccountName"] == "spark"
    assert _executor()["spec"]["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in _executor()["spec"]


def test_memory_is_reckoned_as_spark_does_for_python() -> None:
    """Two fifths on top, 384 MiB at least; the driver's request and limit are the sum."""
    (container,) = _driver(spec__driver__memory="2g")["containers"]
    assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"] == "2867Mi"
    (container,) = _driver(spec__driver={"memory": "512m"})["containers"]
    assert container["resources"]["limits"]["memory"] == "896Mi"
    properties = _properties(spec__executor={"memory": "1G", "memoryOverhead": "100m"})
    assert (properties["spark.executor.memory"], properties["spark.executor.memoryOverhead"]) == ("1024m", "100m")


def test_cores_are_requested_and_limited_only_when_asked() -> None:
    """A driver that waits needs less than it may use."""
    (container,) = _driver(spec__driver__cores=2)["containers"]
    assert container["resources"]["requests"]["cpu"] == "2"
    assert "cpu" not in container["resources"]["limits"]
    (container,) = _driver(spec__driver={"cores": 2, "coreRequest": "250m", "coreLimit": "3"})["containers"]
    assert (container["resources"]["requests"]["cpu"], container["resources"]["limits"]["cpu"]) == ("250m", "3")
    assert _properties(spec__executor__coreRequest="100m")["spark.kubernetes.executor.request.cores"] == "100m"


def test_without_executors_the_driver_does_the_work() -> None:
    """Spark's own local mode, with the driver's cores."""
    (container,) = _driver(spec__executor={"instances": 0}, spec__driver={"cores": 3})["containers"]
    assert container["args"][:2] == ["--master", "local[3]"]


def test_dynamic_allocation_reaches_spark() -> None:
    """With what it needs on Kubernetes, where nothing keeps the shuffle files of an executor that goes."""
    properties = _properties(spec__dynamicAllocation={"enabled": True, "minExecutors": 1, "maxExecutors": 4})
    assert properties["spark.dynamicAllocation.enabled"] == "true"
    assert properties["spark.dynamicAllocation.minExecutors"] == "1"
    assert properties["spark.dynamicAllocation.maxExecutors"] == "4"
    assert "spark.dynamicAllocation.initialExecutors" not in properties
    assert properties["spark.dynamicAllocation.shuffleTracking.enabled"] == "true"
    assert properties["spark.kubernetes.executor.deleteOnTermination"] == "true", "idle ones would pile up"
    assert _properties()["spark.kubernetes.executor.deleteOnTermination"] == "false", "failed ones are looked at"


def test_a_users_properties_win_over_our_defaults_and_lose_to_what_is_managed() -> None:
    """A default is a suggestion."""
    conf = {"spark.app.name": "nightly", "spark.kubernetes.executor.deleteOnTermination": "true"}
    properties = _properties(spec__sparkConf=conf)
    assert properties["spark.app.name"] == "nightly"
    assert properties["spark.kubernetes.executor.deleteOnTermination"] == "true"
    assert _properties()["spark.app.name"] == "archive"
    assert properties["spark.kubernetes.executor.podTemplateFile"] == "/etc/parallel-consumer/executor.yaml"


def test_every_text_survives_the_properties_file() -> None:
    """Backslashes, lines, leading blanks and odd keys, as Java reads them."""
    assert as_properties_file({"spark.a": " b\\c\nd=e"}) == "spark.a=\\ b\\\\c\\nd=e\n"
    assert as_properties_file({"spark.a b:c=": "x"}) == "spark.a\\ b\\:c\\==x\n"


def test_modules_and_environment_reach_driver_and_executors() -> None:
    """Secrets come by reference, on both sides."""
    secret = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    changes = {"spec__pyFiles": ["local:///a.py", "local:///b.zip"], "spec__env": [secret]}
    assert _properties(**changes)["spark.submit.pyFiles"] == "local:///a.py,local:///b.zip"
    assert secret in _driver(**changes)["containers"][0]["env"]
    assert secret in _executor(**changes)["spec"]["containers"][0]["env"]


def test_templates_are_merged_into_driver_and_executors() -> None:
    """By the containers' names, driver and executor."""
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "flights"}}
    mount = {"name": "data", "mountPath": "/data"}
    for role in ("driver", "executor"):
        template = {"spec": {"volumes": [claim], "containers": [{"name": role, "volumeMounts": [mount]}]}}
        changes: dict[str, Any] = {f"spec__{role}": {"template": template}}
        spec = _driver(**changes) if role == "driver" else _executor(**changes)["spec"]
        (container,) = spec["containers"]
        assert claim in spec["volumes"]
        assert mount in container["volumeMounts"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_application_finds_its_window() -> None:
    """As the library reads it; what brought the window about is not in it."""
    part = {"partition": 0, "start": 100, "end": 250}
    window = {
        "consumer": "flights",
        "consumerUid": "u-2",
        "entry": "archive",
        "sequence": 7,
        "retry": 1,
        "source": "Results",
        "cause": "Offsets",
        "topics": [{"name": "delays", "id": "vPeOCWypqUOSepEvx0cbog", "partitions": [part]}],
        "kafka": {"bootstrapServers": "kafka:9092", "config": {"security.protocol": "PLAINTEXT"}},
        "onDataLoss": "Skip",
    }
    job = _job(spec__window=window)
    found = Window.from_json(config_map(job.identity, job.spec)["data"]["window.json"])
    assert (found.consumer, found.entry, found.sequence, found.source) == ("flights", "archive", 7, "Results")
    assert (found.namespace, found.consumer_uid, found.on_data_loss) == (job.identity.namespace, "u-2", "Skip")
    assert (found.bootstrap_servers, found.kafka_config) == ("kafka:9092", {"security.protocol": "PLAINTEXT"})
    assert [(topic.name, topic.topic_id, topic.partitions) for topic in found.topics] == [
        ("delays", "vPeOCWypqUOSepEvx0cbog", (PartitionRange(0, 100, 250),))
    ]
    env = {one["name"]: one.get("value") for one in _driver(spec__window=window)["containers"][0]["env"]}
    assert env["PARALLEL_CONSUMER_WINDOW"] == "/etc/parallel-consumer/window.json"


def test_a_run_without_a_window_has_no_file_of_one() -> None:
    """Nor a variable that names one."""
    job = _job()
    assert "window.json" not in config_map(job.identity, job.spec)["data"]
    assert "PARALLEL_CONSUMER_WINDOW" not in {one["name"] for one in _driver()["containers"][0]["env"]}


def test_a_window_that_ends_before_it_starts_is_refused() -> None:
    """By the partition's number."""
    topic = {"name": "t", "id": "i", "partitions": [{"partition": 3, "start": 9, "end": 8}]}
    window = {
        "consumer": "c",
        "consumerUid": "u",
        "entry": "e",
        "sequence": 1,
        "source": "Input",
        "topics": [topic],
        "kafka": {"bootstrapServers": "kafka:9092"},
    }
    with pytest.raises(ValidationError, match="partition 3: end 8 is below start 9"):
        _job(spec__window=window)


def test_the_service_reaches_the_driver_of_any_attempt() -> None:
    """Its name and selector do not carry the attempt."""
    spec = service(_job().identity)["spec"]
    labels = _batch(attempt=7)["spec"]["template"]["metadata"]["labels"]
    assert spec["clusterIP"] == "None"
    assert spec["selector"].items() <= labels.items()
    assert {port["name"]: port["port"] for port in spec["ports"]} == {"driver": 7078, "block-manager": 7079, "ui": 4040}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"spec__env": [{"name": "PARALLEL_CONSUMER_ATTEMPT", "value": "1"}]}, "spec.env[0].name"),
        ({"spec__env": [{"value": "1"}]}, "spec.env[0].name"),
        (
            {"spec__driver__template": {"spec": {"serviceAccountName": "admin"}}},
            "spec.driver.template.spec.serviceAccountName",
        ),
        ({"spec__executor__template": {"spec": {"hostNetwork": True}}}, "spec.executor.template.spec.hostNetwork"),
        (
            {"spec__executor__template": {"spec": {"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}}},
            "spec.executor.template.spec.volumes[0].hostPath",
        ),
        (
            {"spec__driver__template": {"spec": {"volumes": [{"name": "config"}]}}},
            "spec.driver.template.spec.volumes[0].name",
        ),
        (
            {
                "spec__driver__template": {
                    "spec": {"containers": [{"name": "driver", "securityContext": {"privileged": True}}]}
                }
            },
            "spec.driver.template.spec.containers[0].securityContext.privileged",
        ),
        ({"spec__driver__template": {"spec": {"restartPolicy": "Always"}}}, "spec.driver.template.spec.restartPolicy"),
        (
            {"spec__executor__template": {"metadata": {"labels": {"parallelconsumer.io/attempt": "9"}}}},
            "spec.executor.template.metadata.labels.parallelconsumer.io/attempt",
        ),
    ],
)
def test_what_reaches_too_far_is_refused_by_path(changes: dict[str, Any], path: str) -> None:
    """Writing a SparkJob gives no more power than the operator means to give."""
    (refusal,) = spark_refusals(SparkJob.parse(spark_job(metadata__uid="u-1", **changes)).spec)
    assert refusal.startswith(f"{path}: ")
