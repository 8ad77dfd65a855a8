"""The jars of RocketMQ are fetched once and whole; what is missing is said in one line.

Java and Maven are small scripts here that do what the real ones are asked for.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "interop_jars.py"
JAVA = "echo 'openjdk version \"{version}\" 2025-04-15' >&2"
MAVEN = """
for word in "$@"; do
  case $word in
    -DoutputDirectory=*) place=${word#*=} ;;
    -Drocketmq.version=*) version=${word#*=} ;;
  esac
done
mkdir -p "$place"
for part in PARTS; do echo jar > "$place/rocketmq-$part-$version.jar"; done
echo "$version" >> "$XDG_CACHE_HOME/called"
"""


class Machine:
    """A machine with some programs and an empty cache."""

    def __init__(self, home: Path) -> None:
        self._bin = home / "bin"
        self._bin.mkdir()
        self.cache = home / "cache"
        self.cache.mkdir()
        for name in ("sh", "mkdir"):
            (self._bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")

    def has(self, name: str, script: str = "") -> None:
        path = self._bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def has_java(self, version: str = "17.0.15") -> None:
        self.has("java", JAVA.format(version=version))
        self.has("javac")

    def has_maven(self, parts: str = "namesrv broker client tools") -> None:
        self.has("mvn", MAVEN.replace("PARTS", parts))

    def fetch(self, *versions: str) -> tuple[int, list[str], list[str]]:
        done = subprocess.run(
            [sys.executable, TOOL, *versions],
            env={"PATH": str(self._bin), "XDG_CACHE_HOME": str(self.cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    @property
    def kept(self) -> list[str]:
        """What the cache holds, without the content's mark."""
        root = self.cache / "pocketmq" / "java"
        return sorted(path.name.partition("-")[0] for path in root.glob("*"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_without_java_is_told_so(machine: Machine) -> None:
    said = "interop: a JDK of Java 8 or newer is needed (found no java)"
    assert machine.fetch() == (1, [], [said])
    machine.has("java", JAVA.format(version="17.0.15"))
    said = "interop: a JDK of Java 8 or newer is needed (found java, but no javac)"
    assert machine.fetch() == (1, [], [said])


def test_an_old_java_is_not_enough(machine: Machine) -> None:
    machine.has_java("1.7.0_80")
    found = 'java -version: openjdk version "1.7.0_80" 2025-04-15'
    said = f"interop: a JDK of Java 8 or newer is needed ({found})"
    assert machine.fetch() == (1, [], [said])


def test_a_machine_without_maven_is_told_so(machine: Machine) -> None:
    machine.has_java("1.8.0_402")
    said = "interop: Maven is needed to fetch RocketMQ's jars (found no mvn)"
    assert machine.fetch() == (1, [], [said])


def test_jars_are_fetched_once(machine: Machine) -> None:
    machine.has_java()
    machine.has_maven()
    code, places, _ = machine.fetch("5.5.0", "4.9.7")
    assert code == 0
    for place, version in zip(places, ("5.5.0", "4.9.7"), strict=True):
        assert re.fullmatch(rf"{version}-[0-9a-f]{{12}}", Path(place).name)
        assert (Path(place) / f"rocketmq-broker-{version}.jar").exists()
    assert machine.fetch("5.5.0") == (0, places[:1], [])
    assert (machine.cache / "called").read_text().split() == ["5.5.0", "4.9.7"]


def test_half_of_them_are_not_kept(machine: Machine) -> None:
    machine.has_java()
    machine.has_maven("namesrv client tools")
    said = "interop: Maven did not bring rocketmq-broker-5.5.0.jar"
    fetching = "fetching the jars of RocketMQ 5.5.0"
    assert machine.fetch("5.5.0") == (1, [], [fetching, said])
    machine.has("mvn", "echo '[ERROR] no such host'; exit 1")
    said = "interop: Maven could not fetch the jars of RocketMQ 5.5.0: [ERROR] no such host"
    assert machine.fetch("5.5.0") == (1, [], [fetching, said])
    assert machine.kept == []
    machine.has_maven()
    assert machine.fetch("5.5.0")[0] == 0
    assert machine.kept == ["5.5.0"]
