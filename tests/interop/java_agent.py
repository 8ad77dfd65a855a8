"""OpenTelemetry's agent for Java, from Maven: it traces RocketMQ's clients without their help."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "2.33.1"
_ARTIFACT = f"io.opentelemetry.javaagent:opentelemetry-javaagent:{VERSION}"
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def fetched() -> Path:
    """Return the agent's jar, fetched now if it is not there; a run that was cut short leaves none."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketmq" / "java"
    jar = caches / f"opentelemetry-javaagent-{VERSION}.jar"
    if jar.is_file():
        return jar
    assert shutil.which("mvn"), "no mvn"
    caches.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=caches, prefix="agent-") as filling:
        command = ["mvn", "--batch-mode", "--no-transfer-progress", "--quiet", _GOAL]
        command += [f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={filling}"]
        done = subprocess.run(command, cwd=filling, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (Path(filling) / jar.name).rename(jar)
    return jar


def with_agent(command: list[str], url: str) -> list[str]:
    """Return a Java command line whose clients are traced, spans exported to an OTLP receiver."""
    first, *rest = command
    properties = {
        "exporter.otlp.endpoint": url,
        "exporter.otlp.protocol": "http/protobuf",
        "metrics.exporter": "none",
        "logs.exporter": "none",
        "bsp.schedule.delay": "100",
    }
    options = [f"-Dotel.{name}={value}" for name, value in properties.items()]
    # The agent changes classes, so none may come from an archive of those that were loaded before.
    rest = [each for each in rest if not each.startswith("-XX:SharedArchiveFile=")]
    return [first, f"-javaagent:{fetched()}", *options, *rest]
