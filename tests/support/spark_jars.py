"""The jars of Spark's Kafka and Avro sources, from Maven Central, once per user; each must have the hash that is written here."""

import hashlib
import importlib.metadata
import shutil
import subprocess
from pathlib import Path

from tests.support.cache import cached

SPARK_VERSION = "4.0.0"
JARS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0": "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0": "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    "org.apache.spark:spark-avro_2.13:4.0.0": "083fb13d7a1091025b135eff216e2009b42c9724bb8bc597d2f28b1207ef4709",
    "org.apache.kafka:kafka-clients:3.9.0": "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18",
    "org.apache.commons:commons-pool2:2.12.0": "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b",
}
"""By coordinates, SHA-256. What else they need is among PySpark's own jars."""
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def why_unavailable() -> str | None:
    """Return what this machine lacks to run Spark, None when it lacks nothing."""
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"not on PATH: {', '.join(missing)}; Spark needs a JDK 17, and Maven fetches its jars" if missing else None


def spark_jars() -> list[Path]:
    """Return the jars.

    Raises:
        RuntimeError: Maven failed, or a jar is not the one that was expected.
    """
    installed = importlib.metadata.version("pyspark")
    if installed != SPARK_VERSION:
        raise RuntimeError(f"PySpark is {installed}, and the jars here are of {SPARK_VERSION}: change both")
    recipe = "\n".join(f"{coordinates} {digest}" for coordinates, digest in JARS.items())
    return sorted(cached("spark-jars", recipe, _fetch).glob("*.jar"))


def _fetch(target: Path) -> None:
    for coordinates, digest in JARS.items():
        _, artifact, version = coordinates.split(":")
        # Each by itself: the poms' own repositories and dependencies are not asked.
        command = ["mvn", "-B", "-q", _PLUGIN, f"-Dartifact={coordinates}", f"-DoutputDirectory={target}"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=target)
        if ran.returncode:
            raise RuntimeError(f"Maven could not fetch {coordinates}:\n{(ran.stdout + ran.stderr)[-2000:]}")
        found = hashlib.sha256((target / f"{artifact}-{version}.jar").read_bytes()).hexdigest()
        if found != digest:
            raise RuntimeError(f"{coordinates} has the hash {found}, and {digest} was expected")
