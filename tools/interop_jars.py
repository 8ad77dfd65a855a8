"""Fetch the jars of Apache RocketMQ with Maven, once, into a cache; print where they are.

`python tools/interop_jars.py 5.5.0 4.9.7` prints a directory a line. The cache is
`$XDG_CACHE_HOME/pocketmq/java` (or `~/.cache/…`), a directory for each version and content of
`pom.xml`. A directory gets its name when it is whole, so a run that was cut short leaves none.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

POM = Path(__file__).parents[1] / "tests" / "interop" / "java" / "pom.xml"
VERSIONS = ("5.5.0", "4.9.7")
OLDEST_JAVA = 8
NEEDED = ("namesrv", "broker", "client", "tools")


class Missing(Exception):
    """Something that must be installed is not, or Maven failed; the message is one line."""


def cached(version: str) -> Path:
    """Return the directory of a version's jars, whether it is there or not."""
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    content = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    return Path(caches) / "pocketmq" / "java" / f"{version}-{content}"


def check_tools() -> None:
    """Raise Missing unless Java with its compiler and Maven can be started."""
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        found = "no java" if java is None else "java, but no javac"
        raise Missing(f"a JDK of Java {OLDEST_JAVA} or newer is needed (found {found})")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        first = (said.splitlines() or ["nothing"])[0]
        raise Missing(f"a JDK of Java {OLDEST_JAVA} or newer is needed (java -version: {first})")
    if shutil.which("mvn") is None:
        raise Missing("Maven is needed to fetch RocketMQ's jars (found no mvn)")


def fetch(version: str) -> Path:
    """Return the directory with a version's jars, filled now if it is not there."""
    place = cached(version)
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f"{version}-") as filling:
        jars = Path(filling) / "jars"
        _copy(version, jars)
        absent = [part for part in NEEDED if not list(jars.glob(f"rocketmq-{part}-{version}.jar"))]
        if absent:
            raise Missing(f"Maven did not bring rocketmq-{absent[0]}-{version}.jar")
        try:
            jars.rename(place)
        except OSError:  # another run was first
            if not place.is_dir():
                raise
    return place


def _copy(version: str, jars: Path) -> None:
    print(f"fetching the jars of RocketMQ {version}", file=sys.stderr)
    words = ["mvn", "--batch-mode", "--no-transfer-progress", "--quiet", "--file", str(POM)]
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    options = [f"-Drocketmq.version={version}", "-DincludeScope=runtime"]
    done = subprocess.run([*words, *options, *goal], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        reason = errors[0] if errors else f"exit code {done.returncode}"
        raise Missing(f"Maven could not fetch the jars of RocketMQ {version}: {reason}")


def main(versions: list[str]) -> int:
    """Fetch the versions named, or all; what is missing is said in one line."""
    try:
        check_tools()
        for version in versions or VERSIONS:
            print(fetch(version))
    except Missing as missing:
        print(f"interop: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
