"""A real Apache Kafka for tests: one broker and controller in one JVM, from Maven Central, ready in about 2 s."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.support.cache import cached
from tests.support.kafka_groups import Member
from tests.support.kafka_view import Committed, GroupView, KafkaView
from tests.support.ports import free_ports
from tests.support.processes import REPOSITORY, TiedProcess
from tests.support.waiting import wait_until

KAFKA_VERSION = "4.3.1"
READY_TIMEOUT_S = 60.0
ASK_TIMEOUT_S = 60.0
CONTROLLER_HOST = "127.0.0.1"

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.parallelconsumer.tests</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version>
  </plugin></plugins></build>
</project>
"""

JVM_FLAGS = (
    "-Xms128m",
    "-Xmx768m",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)


def why_unavailable() -> str | None:
    """Return what this machine lacks to run the broker, None when it lacks nothing."""
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"not on PATH: {', '.join(missing)}; Apache Kafka needs a JDK 17 and Maven" if missing else None


def kafka_jars() -> Path:
    """Return the folder of the broker's jars, fetched from Maven Central once per user.

    Raises:
        RuntimeError: Maven failed; holds the end of its output.
    """
    return cached("kafka-jars", POM, _fetch_jars)


def _fetch_jars(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(POM)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        ran = subprocess.run(
            ["mvn", "-B", "-q", "-f", str(pom), *goal], capture_output=True, text=True, timeout=600, check=False
        )
    if ran.returncode:
        raise RuntimeError(f"Maven could not fetch Apache Kafka {KAFKA_VERSION}:\n{(ran.stdout + ran.stderr)[-3000:]}")


class ProxiedListener(NamedTuple):
    """A listener on loopback that tells its clients another port than its own."""

    port: int
    advertised_port: int


class KafkaBroker:
    """A broker that lives as long as the `with` block, and never longer than the test process.

    Args:
        listen_host: the address it listens on.
        advertised_host: the address clients are told; the listen host when None.
        port: its port; a free one when 0.
        proxied: one more listener, for clients that come through a proxy and must stay behind it.
        controller_port: the port of the controller, on loopback; a free one when 0.
        prefix: put before every command that must run where the broker is, such as `nsenter -t 7 -n`.
        properties: broker properties, over the defaults.
        jvm_flags: added to the defaults; the last one of a kind wins.
    """

    def __init__(
        self,
        *,
        listen_host: str = "127.0.0.1",
        advertised_host: str | None = None,
        port: int = 0,
        proxied: ProxiedListener | None = None,
        controller_port: int = 0,
        prefix: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = (),
    ) -> None:
        """Settle addresses; nothing is started yet."""
        free = free_ports(2)
        self._port = port or free[0]
        self._controller_port = controller_port or free[1]
        self._proxied = proxied
        self._listen_host = listen_host
        self._prefix = list(prefix)
        self._properties = dict(properties or {})
        self._jvm_flags = [*JVM_FLAGS, *jvm_flags]
        self._folder = Path(tempfile.gettempdir())
        self._process: TiedProcess | None = None
        self._stack = contextlib.ExitStack()
        self._view: KafkaView | None = None
        self.bootstrap = f"{advertised_host or listen_host}:{self._port}"

    def start(self) -> None:
        """Format the storage when it is new, start the broker, wait until it answers.

        Raises:
            AssertionError: it ended or did not answer in time; holds the end of its log.
        """
        classpath = f"{kafka_jars()}/*"
        java = [*self._prefix, "java", *self._jvm_flags, "-cp", classpath]
        config = self._folder / "server.properties"
        if not config.exists():
            config.write_text("".join(f"{key}={value}\n" for key, value in self._all_properties().items()))
            format_command = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(config)]
            subprocess.run([*java, *format_command], capture_output=True, text=True, timeout=60, check=True)
        log = self._folder / "broker.log"
        process = self._process = TiedProcess([*java, "kafka.Kafka", str(config)], log, env=_quiet_environment())

        def answers() -> bool:
            if process.exit_code is not None:
                raise AssertionError(f"Kafka ended with {process.exit_code}:\n{process.tail()}")
            return bool(self._ask("ready"))

        wait_until(answers, f"Kafka answers at {self.bootstrap}", READY_TIMEOUT_S, state=process.tail)

    def stop(self, grace_s: float = 10.0) -> None:
        """End the broker; its data stays for another `start`."""
        if self._process is not None:
            self._process.end(grace_s)
            self._process = None

    def kill(self) -> None:
        """Kill -9; its data stays for another `start`."""
        if self._process is not None:
            self._forget_view()
            self._process.send(signal.SIGKILL)
            self._process.wait(READY_TIMEOUT_S)
            self._process = None

    def create_topic(self, name: str, partitions: int, config: dict[str, str] | None = None) -> None:
        """Create a topic with one replica; topic properties only for a broker that needs no prefix."""
        if config is None:
            self._ask("create_topic", name, partitions)
        else:
            self._local_view().create_topic(name, partitions, config)

    def topics(self) -> dict[str, int]:
        """Return every topic's number of partitions."""
        return {str(name): int(count) for name, count in self._ask("topics").items()}

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return each partition's high watermark."""
        return {int(partition): int(end) for partition, end in self._ask("end_offsets", topic).items()}

    def committed(self, group: str, topic: str) -> dict[int, Committed]:
        """Return the committed offset and metadata of each partition that has one."""
        answer = self._ask("committed", group, topic)
        return {
            int(partition): one if isinstance(one, Committed) else Committed(**one) for partition, one in answer.items()
        }

    def committed_total(self, group: str, topic: str) -> int:
        """Return the sum of a topic's committed offsets."""
        return sum(commit.offset for commit in self.committed(group, topic).values())

    def commit(self, group: str, topic: str, offsets: dict[int, Committed]) -> None:
        """Commit for a group without members; only for a broker that needs no prefix."""
        self._local_view().commit(group, topic, offsets)

    def group(self, group: str) -> GroupView:
        """Describe a group, with its generation and members, as the broker knows it now."""
        answer: Any = self._ask("group", group)
        if isinstance(answer, GroupView):
            return answer
        members = tuple(
            Member(one["member_id"], one["instance_id"], one["client_id"], tuple((t, p) for t, p in one["assignment"]))
            for one in answer["members"]
        )
        return GroupView(answer["group"], answer["state"], answer["generation"], members)

    def log_tail(self) -> str:
        """Return the last lines of the broker's log."""
        return self._process.tail() if self._process else ""

    def _all_properties(self) -> dict[str, str]:
        controller = f"{CONTROLLER_HOST}:{self._controller_port}"
        listeners = f"PLAINTEXT://{self._listen_host}:{self._port}"
        advertised = f"PLAINTEXT://{self.bootstrap}"
        protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
        if self._proxied is not None:
            listeners += f",PROXIED://127.0.0.1:{self._proxied.port}"
            advertised += f",PROXIED://127.0.0.1:{self._proxied.advertised_port}"
            protocols += ",PROXIED:PLAINTEXT"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://{controller}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": protocols,
            "log.dirs": str(self._folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "log.cleaner.dedupe.buffer.size": str(8 * 1024**2),
            **self._properties,
        }

    def _local_view(self) -> KafkaView:
        if self._view is None:
            self._view = KafkaView(self.bootstrap)
        return self._view

    def _ask(self, method: str, *arguments: str | int) -> Any:
        if not self._prefix:
            return getattr(self._local_view(), method)(*arguments)
        command = [*self._prefix, sys.executable, "-m", "tests.support.kafka_view", self.bootstrap, method]
        ran = subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=ASK_TIMEOUT_S,
            cwd=REPOSITORY,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(f"asking Kafka for {method} failed:\n{ran.stderr[-3000:]}")
        return json.loads(ran.stdout)

    def __enter__(self) -> Self:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-")))
        self._stack.callback(self._close)
        try:
            self.start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _close(self) -> None:
        self._forget_view()
        self.stop()

    def _forget_view(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None


def _quiet_environment() -> dict[str, str]:
    """Return this environment without what would add options to the JVM and lines to its log."""
    return {key: value for key, value in os.environ.items() if key not in {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"}}
