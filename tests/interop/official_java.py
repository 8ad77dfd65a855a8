"""Apache's gRPC client for Java: its jar from Maven, and our program that uses it."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.interop.jvm import Process

HERE = Path(__file__).parent / "java_grpc"
POM, PROGRAM = HERE / "pom.xml", HERE / "Official.java"


def made_ready() -> Path:
    """Return the directory with the jars and the compiled program, filled now if it is not there.

    Its name has the contents of both files; a run that was cut short leaves none.
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketmq" / "java"
    content = hashlib.sha256(POM.read_bytes() + PROGRAM.read_bytes()).hexdigest()[:12]
    place = caches / f"grpc-{content}"
    if place.is_dir():
        return place
    caches.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=caches, prefix="grpc-") as filling:
        made = Path(filling) / "made"
        maven = ["mvn", "--batch-mode", "--no-transfer-progress", "--quiet", "--file", str(POM)]
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={made}"]
        _run([*maven, "-DincludeScope=runtime", *copy])
        _run(["javac", "-nowarn", "-Xlint:none", "-cp", f"{made}/*", "-d", str(made), str(PROGRAM)])
        try:
            made.rename(place)
        except OSError:  # another run was first
            if not place.is_dir():
                raise
    return place


def lines_of(home: Path, *arguments: str) -> list[str]:
    """Run the program to its end and return its lines."""
    made = made_ready()
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Duser.home={home}"]
    command = ["java", *options, "-cp", f"{made}:{made}/*", "Official", *arguments]
    with Process(command, home) as process:
        lines = process.wait_for_end()
    assert lines[-1:] == ["end"], "\n".join(lines)
    return lines[:-1]


def _run(command: list[str]) -> None:
    assert shutil.which(command[0]), f"no {command[0]}"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
