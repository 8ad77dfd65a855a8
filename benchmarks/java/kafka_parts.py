"""The broker of Apache Kafka and its client confluent-kafka, fetched once into the cache.

Neither is a dependency of PocketMQ: jars come with Maven, the client with pip into a directory of
its own. A directory gets its name when it is whole, so a run that was cut short leaves none.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

POM = Path(__file__).parent / "kafka-pom.xml"
SPARK_POM = Path(__file__).parent / "kafka-spark-pom.xml"
CLIENT = "confluent-kafka"
CLIENT_VERSION = "2.16.1"


class NoKafkaError(Exception):
    """Kafka cannot be measured; the message is why."""


class KafkaParts(NamedTuple):
    """Where the jars and the client are."""

    jars: Path
    client: Path

    @property
    def version(self) -> str:
        (server,) = self.jars.glob("kafka-server-[0-9]*.[0-9].jar")
        return server.stem.removeprefix("kafka-server-")


def find_kafka() -> KafkaParts:
    """Return where both are, fetched now if they are not there; raises NoKafkaError."""
    if shutil.which("java") is None:
        raise NoKafkaError("no JDK")
    jars = _jars_of("kafka", POM)
    tag = sysconfig.get_config_var("SOABI") or "python"
    name = f"{CLIENT}-{CLIENT_VERSION}-{tag}"
    return KafkaParts(jars, _fetched(_caches() / "python" / name, _fetch_client))


def find_spark_source() -> list[Path]:
    """Return the jars of Spark's own Kafka source and sink; raises NoKafkaError."""
    return sorted(_jars_of("kafka-spark", SPARK_POM).glob("*.jar"))


def _caches() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketmq"


def _jars_of(name: str, pom: Path) -> Path:
    content = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    return _fetched(_caches() / "java" / f"{name}-{content}", partial(_fetch_jars, pom))


def _fetched(place: Path, fetch: Callable[[Path], None]) -> Path:
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as filling:
        made = Path(filling) / "made"
        fetch(made)
        try:
            made.rename(place)
        except OSError:  # another run was first
            if not place.is_dir():
                raise
    return place


def _fetch_jars(pom: Path, directory: Path) -> None:
    if shutil.which("mvn") is None:
        raise NoKafkaError("no Maven")
    command = ["mvn", "--batch-mode", "--no-transfer-progress", "--quiet", "--file", str(pom)]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
    _run([*command, "-DincludeScope=runtime"], "Maven could not fetch its jars")


def _fetch_client(directory: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--target", str(directory)]
    _run([*command, f"{CLIENT}=={CLIENT_VERSION}"], f"pip could not fetch {CLIENT}")


def _run(command: list[str], complaint: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoKafkaError(complaint)
