"""Reconciling SparkJobs: each state reached on purpose, each failure in words, rest when there is nothing to do."""

from typing import Any

import pytest

from parallel_consumer_operator.errors import ForbiddenError, RefusedError, ServerUnavailableError
from parallel_consumer_runtime.settings.spark import SPARK_JOB_KIND
from tests.support.fake_spark import KEY, SparkWorld

RETRIES = {"type": "OnFailure", "onFailureRetries": 2, "onFailureRetryInterval": "30s"}
RAISED = """26/01/02 03:04:05 INFO SparkContext: Running Spark
Traceback (most recent call last):
  File "/opt/app/archive.py", line 3, in <module>
    main()
ValueError: no such route: EWR-XXX
26/01/02 03:04:06 INFO ShutdownHookManager: Shutdown hook called
"""
FORBIDDEN = (
    "26/01/02 03:04:05 ERROR ExecutorPodsSnapshotsStoreImpl: Going to stop due to IllegalArgumentException\n"
    "io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: POST at: https://10.0.0.1/api/v1/pods. "
    'Message: pods "archive-1-exec-1" is forbidden: violates PodSecurity "restricted:latest". Received status: ...\n'
)


def test_a_run_from_beginning_to_end_and_then_silence() -> None:
    """Pending, Starting, Running, Succeeded; each is said once, and nothing is written in between or afterwards."""
    world = SparkWorld()
    assert world.step() == ["apply ConfigMap", "apply Service", "create Job archive-1", "status"]
    assert world.state == "Pending"
    world.step()
    assert world.state == "Starting"
    driver = world.driver_comes()
    world.runs(driver)
    assert world.step() == ["status"]
    assert (world.state, world.condition("Running")[1]) == ("Starting", "Waiting")
    world.runs(world.executor_comes())
    assert world.step() == ["status"]
    assert (world.state, world.condition("Running")[:2]) == ("Running", ("True", "Running"))
    assert world.status["driver"]["podName"] == driver
    assert world.status["driver"]["uiAddress"] == "http://archive-driver.default.svc:4040"
    assert world.status["executors"] == {"wanted": 1, "pending": 0, "running": 1, "failed": 0}
    assert world.status["applicationId"] == "spark-1"
    assert world.step() == world.step() == []
    world.ends(driver, 0)
    world.step()
    world.job_says("Complete")
    world.settle()
    assert (world.state, world.condition("Succeeded")[:2]) == ("Succeeded", ("True", "ApplicationSucceeded"))
    assert world.status["attempts"] == 1
    assert world.status["startTime"] < world.status["runningSince"] < world.status["completionTime"]
    assert world.step(86_400) == []
    assert world.reconcile() is None
    assert world.batch_jobs() == ["archive-1"]


def test_events_tell_transitions_and_nothing_else() -> None:
    """Good news are Normal, each is told once."""
    world = SparkWorld()
    driver = world.running()
    for _ in range(5):
        world.step()
    world.fails(driver, log=RAISED)
    world.settle()
    told = [(event["type"], event["reason"]) for event in world.kube.events]
    assert told == [
        ("Normal", "AsDesired"),
        ("Normal", "Waiting"),
        ("Normal", "Running"),
        ("Normal", "Finished"),
        ("Warning", "ApplicationFailed"),
    ]
    assert {event["regarding"]["kind"] for event in world.kube.events} == {SPARK_JOB_KIND}


def test_a_restarted_operator_writes_nothing_when_all_is_well() -> None:
    """An upgrade of the operator is no event for what runs."""
    world = SparkWorld()
    world.running()
    world.restart()
    assert world.step() == []


def test_a_status_that_was_lost_is_written_again() -> None:
    """The Jobs and the pods are the truth, also about when the run began."""
    world = SparkWorld()
    world.running()
    before = dict(world.status)
    world.job["status"] = {}
    world.restart()
    assert world.step() == ["status"]
    for field in ("state", "attempts", "startTime", "runningSince", "driver", "executors"):
        assert world.status[field] == before[field]


def test_a_child_that_someone_changed_is_put_back_but_a_job_never() -> None:
    """The Job was created once; whatever stands there stays."""
    world = SparkWorld()
    world.running()
    del world.kube.objects["Service", "default", "archive-driver"]
    world.batch_job()["metadata"]["labels"]["team"] = "x"
    assert world.step() == ["apply Service"]
    assert world.step() == []


def test_the_application_s_exception_is_told_with_its_last_lines() -> None:
    """The cause in a sentence; the traceback beside it; what Spark said afterwards left out of the sentence."""
    world = SparkWorld()
    driver = world.running()
    world.fails(driver, log=RAISED)
    world.settle()
    assert world.state == "Failed"
    assert world.condition("Succeeded") == (
        "False",
        "ApplicationFailed",
        f"the application raised ValueError: no such route: EWR-XXX; driver pod {driver} ended with status 1",
    )
    assert world.status["driver"]["logTail"].startswith("Traceback (most recent call last):")
    assert "ValueError: no such route: EWR-XXX" in world.status["driver"]["logTail"]
    assert world.step(3600) == []


@pytest.mark.parametrize(
    ("end", "reason", "words"),
    [
        ({"code": 137, "reason": "OOMKilled"}, "DriverOutOfMemory", "ran out of memory (limit 1433Mi)"),
        ({"code": 1, "log": "java.lang.OutOfMemoryError: Java heap space"}, "DriverOutOfMemory", "raise driver.memory"),
        ({"code": 128, "reason": "StartError"}, "ContainerNotStarted", "could not be started from image spark:1"),
        ({"code": 3}, "ApplicationFailed", "ended with status 3"),
        (
            {"code": 1, "log": 'Exception in thread "main" org.apache.spark.SparkException: no such file'},
            "ApplicationFailed",
            "the application raised org.apache.spark.SparkException: no such file",
        ),
        (
            {
                "code": 1,
                "log": "Job aborted: ExecutorLostFailure (executor 1 exited) Reason: exit code 137(SIGKILL, possible container OOM)",
            },
            "ExecutorsOutOfMemory",
            "raise executor.memoryOverhead or executor.memory",
        ),
    ],
)
def test_each_end_of_a_driver_has_its_words(end: dict[str, Any], reason: str, words: str) -> None:
    """Memory, image, application: a person knows what to change."""
    world = SparkWorld()
    driver = world.running()
    world.fails(driver, **end)
    world.settle()
    status, why, message = world.condition("Succeeded")
    assert (world.state, status, why) == ("Failed", "False", reason)
    assert words in message


def test_an_executor_that_was_killed_for_memory_is_told_when_the_application_fails_for_it() -> None:
    """The kubelet's word is believed where the log only says that an executor was lost."""
    world = SparkWorld()
    driver = world.running()
    world.ends("archive-1-exec-1", 137, "OOMKilled")
    world.step()
    assert world.status["executors"]["failed"] == 1
    assert world.state == "Running", "Spark makes another"
    assert "no executor does: executor pod archive-1-exec-1 ran out of memory" in world.status["message"]
    world.now_s += 5
    world.fails(driver, log="ERROR TaskSetManager: ExecutorLostFailure (executor 1 exited unrelated to the task)")
    world.settle()
    assert world.condition("Succeeded")[1] == "ExecutorsOutOfMemory"
    assert world.status["executors"] == {"wanted": 1, "pending": 0, "running": 0, "failed": 1}


def test_executors_that_fail_for_their_driver_are_not_counted() -> None:
    """They end after it, because it ended."""
    world = SparkWorld()
    driver = world.running(executors=2)
    world.fails(driver)
    world.now_s += 1
    world.ends("archive-1-exec-1", 1)
    world.settle()
    assert world.status["executors"]["failed"] == 0


def test_an_executor_that_nothing_would_end_goes_with_its_attempt() -> None:
    """One that no node took is not left waiting; one that failed stays, for whoever asks why."""
    world = SparkWorld()
    driver = world.running(executors=1)
    world.ends("archive-1-exec-1", 1)
    world.executor_comes(2)
    world.ends(driver, 0)
    world.job_says("Complete")
    assert world.step() == ["delete archive-1-exec-2", "status"]
    assert {name for kind, _, name in world.kube.objects if kind == "Pod"} == {driver, "archive-1-exec-1"}
    assert world.step() == []


def test_an_evicted_driver_is_told_even_when_its_pod_is_gone() -> None:
    """The cluster says why while the pod ends; that is kept."""
    world = SparkWorld()
    driver = world.running()
    said = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "node is drained",
    }
    world.pod(driver)["status"]["conditions"] = [said]
    world.step()
    assert "node is drained" in world.status["message"]
    world.kube.collect(("Pod", "default", driver))
    world.job_says("Failed")
    world.settle()
    assert world.condition("Succeeded")[1] == "DriverEvicted"
    assert "node is drained" in world.condition("Succeeded")[2]


def test_a_driver_that_someone_deleted_is_lost() -> None:
    """Nobody gave a reason."""
    world = SparkWorld()
    driver = world.running()
    world.kube.collect(("Pod", "default", driver))
    world.step()
    world.job_says("Failed")
    world.settle()
    assert world.condition("Succeeded")[1] == "DriverLost"


def test_an_image_that_cannot_be_pulled_is_named_at_once_and_ends_the_attempt_in_time() -> None:
    """Which image, and why; after timeouts.start the Job is suspended and the run has failed."""
    world = SparkWorld(spec__timeouts={"start": "2m"})
    world.settle()
    driver = world.driver_comes()
    world.waits(driver, "ImagePullBackOff", "Back-off pulling image: not found")
    world.step()
    assert world.state == "Starting"
    assert world.condition("Running")[1] == "ImageUnavailable"
    assert f"image spark:1 of driver pod {driver} cannot be pulled" in world.condition("Running")[2]
    assert world.kube.logs_read == []
    assert "suspend Job archive-1" in world.step(120)
    world.pods_of_suspended_go()
    world.settle()
    assert world.state == "Failed"
    status, reason, message = world.condition("Succeeded")
    assert (status, reason) == ("False", "ImageUnavailable")
    assert message.startswith("not running within timeouts.start, 2m: image spark:1")


@pytest.mark.parametrize(
    ("prepare", "reason", "words"),
    [
        ("nothing", "StartTimeout", "has no pod yet"),
        ("refused", "DriverRefused", 'serviceaccount "spark" not found'),
        ("unschedulable", "DriverUnschedulable", "0/1 nodes are available"),
        ("executor image", "ImageUnavailable", "of executor pod archive-1-exec-1"),
        ("executors refused", "ExecutorsRefused", "violates PodSecurity"),
        ("executor fails", "ExecutorsFailing", "ended with status 128: no such entrypoint"),
        ("no executor", "StartTimeout", "waits for the first of 1 executors"),
    ],
)
def test_what_an_attempt_waited_for_is_told_when_its_time_is_over(prepare: str, reason: str, words: str) -> None:
    """The reason is the trouble's own where it is known; each is seen before the time is over, too."""
    world = SparkWorld()
    world.settle()
    if prepare == "refused":
        uid = world.batch_job()["metadata"]["uid"]
        note = 'Error creating: pods "archive-1-" is forbidden: serviceaccount "spark" not found'
        world.kube.told.append({"reason": "FailedCreate", "note": note, "regarding": {"uid": uid}})
    elif prepare != "nothing":
        driver = world.driver_comes()
        if prepare == "unschedulable":
            said = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1 nodes are available",
            }
            world.pod(driver)["status"]["conditions"] = [said]
        else:
            world.runs(driver)
    if prepare == "executor image":
        world.waits(world.executor_comes(), "ErrImagePull", "not found")
    if prepare == "executor fails":
        world.ends(world.executor_comes(), 128, "StartError", "no such entrypoint")
    if prepare == "executors refused":
        world.kube.logs["archive-1-x"] = FORBIDDEN
    world.step(10)
    assert words in world.condition("Running")[2]
    assert world.state == "Starting"
    world.step(600)
    world.pods_of_suspended_go()
    world.settle()
    status, why, message = world.condition("Succeeded")
    assert (world.state, status, why) == ("Failed", "False", reason)
    assert words in message
    assert message.startswith("not running within timeouts.start, 10m: ")


def test_a_run_that_takes_too_long_is_stopped_with_its_log_saved() -> None:
    """The Job is suspended, not deleted; cause and log come in the same request, because the pod goes."""
    world = SparkWorld(spec__timeouts={"run": "1h"})
    driver = world.running()
    assert 3500 < (world.reconcile() or 0) <= 3600
    world.kube.logs[driver] = "first\nstage 7 of 9\n"
    assert world.step(3600)[0] == "suspend Job archive-1"
    world.pods_of_suspended_go()
    world.settle()
    assert world.state == "Failed"
    assert world.condition("Succeeded")[1:] == ("RunTimeout", "ran longer than timeouts.run, 1h")
    assert world.status["driver"]["logTail"].endswith("stage 7 of 9")
    assert not [key for key in world.kube.objects if key[0] == "Pod"]


def test_retries_come_after_their_interval_and_end() -> None:
    """Each attempt has a Job of its own; what ended the last one is in the status meanwhile."""
    world = SparkWorld(spec__restartPolicy=RETRIES)
    for attempt in (1, 2, 3):
        driver = world.running(attempt)
        assert (world.state, world.status["attempts"]) == ("Running", attempt)
        world.fails(driver, attempt=attempt, log=RAISED)
        world.step()
        if attempt < 3:
            assert world.state == "Retrying"
            assert "ValueError" in world.status["message"]
            assert world.batch_jobs() == [f"archive-{number}" for number in range(1, attempt + 1)]
            assert world.step(20) == []
            assert f"create Job archive-{attempt + 1}" in world.step(15)
    world.settle()
    assert (world.state, world.status["attempts"], world.status["failures"]) == ("Failed", 3, 3)
    assert world.step(3600) == []
    assert world.batch_jobs() == ["archive-1", "archive-2", "archive-3"]


def test_a_second_attempt_may_succeed() -> None:
    """Then the run has."""
    world = SparkWorld(spec__restartPolicy=RETRIES)
    world.fails(world.running(1))
    world.step()
    world.step(31)
    second = world.running(2)
    assert "logTail" not in world.status["driver"]
    world.ends(second, 0)
    world.job_says("Complete", 2)
    world.settle()
    assert (world.state, world.status["attempts"], world.status["failures"]) == ("Succeeded", 2, 1)


def test_no_attempt_begins_while_a_driver_of_an_earlier_one_is_there() -> None:
    """A pod on a lost node may still write."""
    world = SparkWorld(spec__restartPolicy=RETRIES, spec__timeouts={"run": "1h"})
    driver = world.running()
    world.step(3600)
    world.step()
    assert world.state == "Retrying"
    assert world.step(60) == ["status"]
    assert f"driver pod {driver} of an earlier attempt has not ended" in world.status["message"]
    world.pods_of_suspended_go()
    assert "create Job archive-2" in world.step()


def test_suspend_ends_the_attempt_and_resume_begins_another() -> None:
    """The suspended one is no failure, and uses up no retry."""
    world = SparkWorld()
    world.kube.logs[world.running()] = "stage 7 of 9"
    world.suspend(suspended=True)
    assert "suspend Job archive-1" in world.step()
    world.step()
    assert world.state == "Suspended"
    assert world.status["driver"]["logTail"] == "stage 7 of 9"
    assert "ends" in world.status["message"]
    world.suspend(suspended=False)
    world.step()
    assert world.batch_jobs() == ["archive-1"], "its driver has not ended"
    world.pods_of_suspended_go()
    world.suspend(suspended=True)
    world.settle()
    assert world.step(3600) == []
    world.suspend(suspended=False)
    world.step()
    assert world.condition("Running")[1:] == ("Waiting", "attempt 2 begins")
    driver = world.running(2)
    assert (world.state, world.status["attempts"], world.status["failures"]) == ("Running", 2, 0)
    world.ends(driver, 0)
    world.job_says("Complete", 2)
    world.settle()
    assert world.state == "Succeeded"


def test_what_is_suspended_from_the_start_begins_nothing() -> None:
    """Not even a Job."""
    world = SparkWorld(spec__suspend=True)
    world.settle()
    assert (world.state, world.batch_jobs()) == ("Suspended", [])
    world.suspend(suspended=False)
    world.step()
    assert world.batch_jobs() == ["archive-1"]


def test_suspending_what_has_ended_changes_nothing() -> None:
    """A driver that has ended is judged by its end, also before its Job says so."""
    world = SparkWorld()
    driver = world.running()
    world.ends(driver, 0)
    world.suspend(suspended=True)
    assert "suspend Job archive-1" not in world.step()
    world.job_says("Complete")
    world.settle()
    assert world.state == "Succeeded"
    world.suspend(suspended=False)
    world.settle()
    assert (world.state, world.status["observedGeneration"]) == ("Succeeded", world.job["metadata"]["generation"])
    assert world.batch_jobs() == ["archive-1"]


def test_a_job_that_someone_else_suspended_is_left_to_them() -> None:
    """A queue of jobs may hold it; no time runs out meanwhile."""
    world = SparkWorld(spec__timeouts={"run": "1h"})
    world.running()
    world.batch_job()["spec"]["suspend"] = True
    world.step()
    assert world.state == "Suspended"
    assert "Job archive-1 was suspended by someone else" in world.status["message"]
    assert world.step(7200) == []


def test_the_start_is_counted_from_when_the_job_was_let_go() -> None:
    """A queue of jobs may have held it for hours."""
    world = SparkWorld()
    world.settle()
    world.batch_job()["spec"]["suspend"] = True
    world.step(7200)
    world.batch_job()["spec"]["suspend"] = False
    world.batch_job()["status"] = {"startTime": world.stamp()}
    assert "suspend Job archive-1" not in world.step(10)
    assert world.state == "Starting"
    assert "suspend Job archive-1" in world.step(600)


def test_a_driver_on_a_lost_node_is_named() -> None:
    """It ends never, no other attempt begins, and the message says what a person must do."""
    world = SparkWorld(spec__restartPolicy=RETRIES)
    driver = world.running()
    world.pod(driver)["metadata"]["deletionTimestamp"] = world.stamp()
    world.step(30)
    assert "may be lost" not in world.status["message"]
    world.step(60)
    assert "node n1 may be lost" in world.status["message"]
    assert world.state == "Running"


def test_a_job_that_someone_deleted_is_a_failed_attempt() -> None:
    """It is not run again unasked."""
    world = SparkWorld()
    world.running()
    world.kube.collect(("Job", "default", "archive-1"))
    world.settle()
    assert (world.state, world.condition("Succeeded")[1]) == ("Failed", "JobDeleted")
    assert world.batch_jobs() == []


def test_what_is_finished_never_runs_again() -> None:
    """Not when its Job is cleaned up, not when the operator forgot."""
    world = SparkWorld()
    driver = world.running()
    world.ends(driver, 0)
    world.job_says("Complete")
    world.settle()
    world.kube.collect(("Job", "default", "archive-1"))
    world.restart()
    assert world.step() == []
    assert world.batch_jobs() == []


def test_the_time_to_live_deletes_everything_after_the_end_is_in_the_status() -> None:
    """Job, pods, ConfigMap and Service go with the object; not a moment too early."""
    world = SparkWorld(spec__timeToLiveSecondsAfterFinished=60)
    driver = world.running()
    world.ends(driver, 0)
    world.job_says("Complete")
    assert world.step(300)[-1] == "status"
    assert (SPARK_JOB_KIND, "default", "archive") in world.kube.objects, "the end was not recorded before"
    assert world.step() == ["delete SparkJob archive"]
    assert world.kube.objects == {}
    assert world.step() == []
    assert world.reconciler.known == []


def test_what_another_object_controls_is_left_to_it() -> None:
    """A consumer keeps the history of its windows itself."""
    world = SparkWorld(spec__timeToLiveSecondsAfterFinished=0)
    owner = {"kind": "ParallelConsumer", "name": "flights", "uid": "u-9", "controller": True}
    world.job["metadata"]["ownerReferences"] = [owner]
    driver = world.running()
    world.ends(driver, 0)
    world.job_says("Complete")
    world.settle()
    assert world.step(60) == []
    assert world.reconcile() is None


def test_the_time_to_live_waits_and_says_when_it_comes_again() -> None:
    """No event tells that a time has come."""
    world = SparkWorld(spec__timeToLiveSecondsAfterFinished=60)
    driver = world.running()
    world.ends(driver, 0)
    world.job_says("Complete")
    world.step()
    wait_s = world.reconcile()
    assert wait_s is not None
    assert 50 < wait_s <= 60


def test_a_refused_template_becomes_a_condition_and_begins_nothing() -> None:
    """By path."""
    world = SparkWorld(spec__executor__template={"spec": {"hostNetwork": True}})
    assert world.step() == ["status"]
    assert world.condition("Accepted")[:2] == ("False", "TemplateRefused")
    assert world.condition("Accepted")[2].startswith("spec.executor.template.spec.hostNetwork:")
    assert world.state == "Refused"
    assert world.step() == []


def test_what_runs_is_followed_to_its_end_although_its_template_is_refused_now() -> None:
    """A newer operator may be stricter; it begins nothing more, and hides nothing."""
    world = SparkWorld(spec__restartPolicy=RETRIES)
    driver = world.running()
    world.job["spec"]["executor"] = {"template": {"spec": {"hostNetwork": True}}}
    world.step()
    assert (world.state, world.condition("Accepted")[1]) == ("Running", "TemplateRefused")
    world.fails(driver, log=RAISED)
    world.step()
    assert world.state == "Retrying"
    world.step(60)
    assert (world.state, world.batch_jobs()) == ("Retrying", ["archive-1"])
    assert world.condition("Accepted")[1] == "TemplateRefused"
    assert "ValueError" in world.status["message"]
    assert world.step() == []
    assert (world.reconcile() or 1000) == 10


def test_a_retry_that_the_server_refuses_waits_for_it_to_change_its_mind() -> None:
    """Without a word more than once, and without forgetting how the last attempt ended."""
    world = SparkWorld(spec__restartPolicy=RETRIES)
    world.fails(world.running(), log=RAISED)
    world.step()

    def refuse(writes: str) -> None:
        if writes.startswith("create Job"):
            raise ForbiddenError("exceeded quota: count/jobs.batch")

    world.kube.before_write = refuse
    assert world.step(60) == ["status"]
    for _ in range(5):
        assert world.step(10) == []
    assert (world.state, world.condition("Accepted")[1]) == ("Retrying", "ChildRefused")
    world.kube.before_write = lambda _: None
    assert "create Job archive-2" in world.step(10)
    world.running(2)
    assert (world.status["failures"], world.condition("Accepted")[0]) == (1, "True")


def test_a_spec_that_an_older_schema_let_through_becomes_a_condition() -> None:
    """Never a crash loop."""
    world = SparkWorld(spec__driver={"memory": "1Gi"})
    assert world.step() == ["status"]
    assert world.condition("Accepted")[1] == "SpecRefused"
    assert world.condition("Accepted")[2].startswith("spec.driver.memory:")


def test_a_name_that_is_taken_is_told_and_tried_again() -> None:
    """Neither a ConfigMap nor a Job of someone else is touched."""
    world = SparkWorld()
    theirs = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "archive-1", "namespace": "default"}}
    world.kube.user_applies({**theirs, "spec": {}})
    world.step()
    assert world.condition("Accepted")[:2] == ("False", "NameTaken")
    assert "Job archive-1 belongs to someone else" in world.condition("Accepted")[2]
    assert (world.reconcile() or 1000) <= 10
    del world.kube.objects["Job", "default", "archive-1"]
    world.step(10)
    world.step()
    assert world.condition("Accepted")[0] == "True"
    assert world.state == "Starting"


@pytest.mark.parametrize("error", [RefusedError, ForbiddenError])
@pytest.mark.parametrize("what", ["apply ConfigMap", "create Job archive-1"])
def test_a_child_that_the_server_refuses_becomes_a_condition(error: type[Exception], what: str) -> None:
    """In the server's words; the run begins when it takes it."""
    world = SparkWorld()

    def refuse(writes: str) -> None:
        if writes == what:
            raise error("exceeded quota: count/jobs.batch")

    world.kube.before_write = refuse
    world.step()
    assert world.condition("Accepted")[:2] == ("False", "ChildRefused")
    assert "exceeded quota" in world.condition("Accepted")[2]
    assert world.batch_jobs() == []
    assert (world.reconcile() or 1000) <= 10
    world.kube.before_write = lambda _: None
    world.step(10)
    world.step()
    assert (world.state, world.condition("Accepted")[0]) == ("Starting", "True")


def test_what_runs_goes_on_although_a_child_is_refused() -> None:
    """A quota that came later does not hide the end."""
    world = SparkWorld()
    driver = world.running()
    del world.kube.objects["Service", "default", "archive-driver"]

    def refuse(writes: str) -> None:
        if writes == "apply Service":
            raise RefusedError("exceeded quota: services")

    world.kube.before_write = refuse
    world.step()
    assert (world.state, world.condition("Accepted")[1]) == ("Running", "ChildRefused")
    world.ends(driver, 0)
    world.job_says("Complete")
    world.step()
    assert world.state == "Succeeded"


def test_a_log_that_cannot_be_read_delays_the_end_for_half_a_minute_and_no_longer() -> None:
    """A node that does not answer may come back; one that is gone must not keep a run from ending."""
    world = SparkWorld()
    driver = world.running()
    world.fails(driver)
    world.kube.logs[driver] = ServerUnavailableError("dial tcp: no route to host")
    with pytest.raises(ServerUnavailableError):
        world.step()
    world.step(31)
    assert (world.state, world.condition("Succeeded")[1]) == ("Failed", "ApplicationFailed")
    assert "no route to host" in world.status["driver"]["logTail"]


def test_a_log_that_nobody_may_read_delays_nothing() -> None:
    """The end is told without it."""
    world = SparkWorld()
    driver = world.running()
    world.fails(driver)
    world.kube.logs[driver] = ForbiddenError("pods/log is forbidden")
    world.step()
    assert world.state == "Failed"


def test_a_log_of_any_size_leaves_a_status_that_fits() -> None:
    """A line of megabytes, ten thousand lines."""
    world = SparkWorld()
    driver = world.running()
    world.fails(driver, log="x" * 3_000_000 + "\n" + "line\n" * 10_000 + "ValueError: " + "y" * 1_000_000)
    world.settle()
    assert world.state == "Failed"
    assert len(world.status["driver"]["logTail"]) <= 4096
    assert all(len(item["message"]) <= 2048 for item in world.status["conditions"])


def test_executors_by_need_may_be_none_at_the_start() -> None:
    """A driver without executors runs when none are wanted."""
    world = SparkWorld(spec__dynamicAllocation={"enabled": True, "minExecutors": 0}, spec__executor={"instances": 0})
    world.running(executors=0)
    assert world.state == "Running"
    assert world.status["executors"]["wanted"] == 0


def test_executors_that_go_do_not_make_it_start_again() -> None:
    """Once it ran it runs until its end; timeouts.start is over."""
    world = SparkWorld(spec__dynamicAllocation={"enabled": True, "minExecutors": 0})
    world.running()
    world.kube.collect(("Pod", "default", "archive-1-exec-1"))
    world.step(3600)
    assert (world.state, world.status["executors"]["running"]) == ("Running", 0)
    assert world.step() == []


def test_an_object_that_is_being_deleted_is_left_to_garbage_collection() -> None:
    """Nothing is written for it, nothing is remembered of it."""
    world = SparkWorld()
    world.running()
    world.job["metadata"]["deletionTimestamp"] = world.stamp()
    assert world.step() == []
    world.kube.collect((SPARK_JOB_KIND, "default", "archive"))
    assert world.kube.objects == {}, "every child named its owner"
    assert world.step() == []
    assert KEY not in world.reconciler.known
