"""docs/spark.md: its commands are run as they stand there, and its application as it is written there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.kafka import KafkaBroker
from tests.support.processes import REPOSITORY, TiedProcess
from tests.support.spark_session import driver_environment, spark_settings
from tests.support.spark_windows import Sent, send, window_file, window_json

PAGE = (REPOSITORY / "docs" / "spark.md").read_text()
RUN_TIMEOUT_S = 200.0


def blocks(kind: str) -> list[str]:
    """Return the page's blocks of a language."""
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_every_command_of_the_page_works(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    """By spark-submit, in the page's order, with the jars in Spark's defaults."""
    dead = f"{topic}-dead"
    kafka.create_topic(dead, 1)
    told = {
        "topic": b"flights",
        "partition": b"0",
        "offset": b"4",
        "index": b"0",
        "timestamp-ms": b"1767322800000",
        "attempts": b"1",
    }
    headers = {f"parallel-consumer-result-{name}": value for name, value in told.items()}
    send(kafka.bootstrap, topic, [Sent(0, "JFK-LAX", b"4.5", headers)] * 2)
    send(kafka.bootstrap, dead, [Sent(0, "JFK-LAX", b"late", {"parallel-consumer-dead-letter-topic": b"flights"})])
    (tmp_path / "conf").mkdir()
    settings = "".join(f"{name} {value}\n" for name, value in spark_settings(tmp_path).items())
    (tmp_path / "conf" / "spark-defaults.conf").write_text(settings)
    (block,) = blocks("console")
    commands = (
        block.replace("localhost:9092", kafka.bootstrap).replace("flight-delays", topic).replace("flights-dead", dead)
    )
    environment = driver_environment(tmp_path, {"SPARK_CONF_DIR": str(tmp_path / "conf")})
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    del environment["PYSPARK_SUBMIT_ARGS"]
    with TiedProcess(
        ["bash", "-euo", "pipefail", "-c", commands], tmp_path / "log", env=environment, cwd=tmp_path
    ) as shell:
        assert shell.wait(RUN_TIMEOUT_S) == 0, shell.text()[-3000:]
        said = shell.text()
    assert "window 1: 1 records published in file:///" in said
    assert list((tmp_path / "archive" / "window=1").glob("date=*/hour=*/*.parquet"))
    assert "records_per_s" in said
    assert "1 records stay: no consumer of ours gave them up" in said


def test_the_pages_application_works(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    """It publishes what it selects; a second run says that it was published before."""
    values = [
        b'{"route": "JFK-LAX", "delay": 61.0}',
        b'{"route": "JFK-SFO", "delay": 4.5}',
        b'{"route": "EWR-LAX", "delay": 99.0}',
    ]
    send(kafka.bootstrap, topic, [Sent(0, "k", value, {}) for value in values])
    (application,) = blocks("python")
    (tmp_path / "slow.py").write_text(application)
    file = window_file(tmp_path, window_json(kafka.bootstrap, topic, {0: (0, 3)}))
    environment = driver_environment(tmp_path, {"PARALLEL_CONSUMER_WINDOW": str(file)})
    for words in ("published", "was published before"):
        with TiedProcess([sys.executable, "slow.py", "out"], tmp_path / "log", env=environment, cwd=tmp_path) as driver:
            assert driver.wait(RUN_TIMEOUT_S) == 0, driver.text()[-3000:]
            assert f"{words} file://{tmp_path}/out/window=1" in driver.text()
    folders = sorted(path.name for path in (tmp_path / "out" / "window=1").iterdir() if path.is_dir())
    assert folders == ["route=EWR-LAX", "route=JFK-LAX"]
    assert json.loads((tmp_path / "out" / "window=1" / "_window.json").read_text())["rows"] == 2


def test_the_applications_help_needs_no_spark() -> None:
    """Each says what it is for without a session."""
    for name in ("archive", "dead_letters", "processing_statistics"):
        command = [
            sys.executable,
            str(REPOSITORY / "runtime" / "parallel_consumer_spark" / "apps" / f"{name}.py"),
            "--help",
        ]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY)
        assert ran.returncode == 0, ran.stderr
        assert "--window" in ran.stdout
