"""Files for containers, systemd and Kubernetes: their commands are run, and checkers see them.

There is no container engine where tests run, so the steps of the image are carried out as plain
commands, in a directory of their own and as a user without rights.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]

from pocketmq.cli import pocketmq
from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NOBODY = 65534


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Containerfile, continued lines joined."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def last(word: str) -> str:
    return [rest for found, rest in instructions() if found == word][-1]


def check_command(words: list[str]) -> None:
    """Parse a command of ours without running it; raises what the user would be told."""
    group: click.Command = pocketmq
    context = group.make_context("pocketmq", list(words))
    while isinstance(group, click.Group):
        name, command, rest = group.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert command is not None
        group, context = command, command.make_context(name, rest, parent=context)


def test_a_wrong_command_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        check_command(["up", "--no-such-option"])
    with pytest.raises(click.UsageError):
        check_command(["no-such-command"])


def test_commands_of_all_files_are_understood() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    pod = yaml.safe_load((DEPLOY / "kubernetes/statefulset.yaml").read_text())
    [container] = pod["spec"]["template"]["spec"]["containers"]
    unit = (DEPLOY / "pocketmq.service").read_text()
    start = shlex.split(re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0])
    commands: list[list[str]] = [
        json.loads(last("CMD")),
        json.loads(last("HEALTHCHECK").partition("CMD ")[2])[1:],
        *(service["command"] for service in compose["services"].values()
          if service["image"] == "pocketmq"),
        container["args"],
        container["readinessProbe"]["exec"]["command"][1:],
        start[1:],
    ]  # fmt: skip
    for words in commands:
        check_command(words)
    assert len(commands) == 7


def test_services_of_the_compose_file_are_those_that_others_name() -> None:
    compose: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        for volume in service.get("volumes", ()):
            assert volume.partition(":")[0] in compose["volumes"]
    hosts = re.findall(
        r"([a-z]+):9876", json.dumps([each["command"] for each in services.values()])
    )
    assert set(hosts) <= services.keys()


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that every user may enter.

    Not one of pytest's: each run of pytest closes the folder of all runs to other users, also one
    that a test of another worker starts.
    """
    with TemporaryDirectory(prefix="pocketmq-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Yield a folder that every user may enter."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """Do what the image is built with; the core is built and tested elsewhere."""
    with open_folder() as place:
        yield build_image(place)


def build_image(place: Path) -> Path:
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from") and "native" not in rest:
            *names, target = rest.split()
            for name in names:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, place / target / name if target == "./" else place / target)
    build = next(rest for word, rest in instructions() if word == "RUN" and "venv" in rest)
    build = build.replace(" ./native", "").replace("/opt/pocketmq", str(place / "opt"))
    build = re.sub(r"\bpython -m", f"{sys.executable} -m", build)
    subprocess.run(["sh", "-ec", build], cwd=place, check=True, capture_output=True, timeout=300)
    return place / "opt"


@pytest.mark.timeout(400)
def test_the_image_serves_as_a_user_without_rights(image: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o777)
    words = [word.replace("/data", str(data)) for word in json.loads(last("CMD"))]
    words += ["--port", "0", "--broker-port", "0"]
    program = image / "bin/pocketmq"
    as_nobody = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
    with ServerProcess(*words, command=(*as_nobody, str(program))) as server:
        health = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
        done = subprocess.run(
            [image / "bin" / health[0], *health[1:]],
            env={"PATH": os.environ["PATH"], "NAMESRV_ADDR": server.namesrv},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "broker-0" in done.stdout
        if os.getuid() == 0:
            status = Path(f"/proc/{server.process.pid}/status").read_text()
            assert re.search(rf"^Uid:\s+{NOBODY}\s", status, re.MULTILINE)
    assert list(data.iterdir()), "what it stored"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "pocketmq.service").read_text()
    unit = tmp_path / "pocketmq.service"
    unit.write_text(text.replace("/opt/pocketmq/bin/pocketmq", shutil.which("true") or "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, [line for line in done.stderr.splitlines() if "pocketmq" in line]) == (
        0,
        [],
    )


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")
def test_kustomize_puts_the_parts_together() -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", DEPLOY / "kubernetes"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    parts = list(yaml.safe_load_all(done.stdout))
    assert [part["kind"] for part in parts] == ["Service", "StatefulSet"]
    labels = parts[1]["spec"]["template"]["metadata"]["labels"]
    assert parts[0]["spec"]["selector"].items() <= labels.items()
