"""A local Spark for tests: two threads, loopback only, no UI, few partitions, no line of log but errors.

The JVM of a session is a child that ends when this process's end of its standard input closes, however this process dies.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession

from tests.support.processes import REPOSITORY
from tests.support.spark_jars import spark_jars

SECRET_ENV = "KAFKA_PASSWORD_OF_TESTS"
"""What a session of tests has in its environment, as a pod has a secret."""
SECRET = "canary-8c1f"
LOG4J = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{5}
"""


def spark_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a local session whose files lie in a folder."""
    log4j = folder / "log4j2.properties"
    log4j.write_text(LOG4J)
    return {
        "spark.master": "local[2]",
        "spark.jars": ",".join(map(str, spark_jars())),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={log4j} "
        f"-Dderby.system.home={folder}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def driver_environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which a plain `python application.py` has such a session."""
    arguments = [f'--conf "{name}={value}"' for name, value in spark_settings(folder).items()]
    kept = {name: value for name, value in os.environ.items() if name not in {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"}}
    return {
        **kept,
        "PYSPARK_SUBMIT_ARGS": f"{' '.join(arguments)} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'runtime'}",
        **(more or {}),
    }


@contextmanager
def spark_session(folder: Path) -> Generator[SparkSession]:
    """Run a session in this process; its JVM is gone when the block ends."""
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"):
        os.environ.pop(name, None)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ[SECRET_ENV] = SECRET
    builder = cast("Any", SparkSession.builder).appName("tests")
    for name, value in spark_settings(folder).items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    gateway = cast("Any", session.sparkContext)._gateway
    try:
        yield session
    finally:
        session.stop()
        gateway.shutdown()
        process = gateway.proc
        process.stdin.close()
        process.wait(30)
        context = cast("Any", type(session.sparkContext))
        context._gateway = context._jvm = None
