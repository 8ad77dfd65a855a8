"""Admin commands start fast: what they do not need is not imported."""

import os
import pty
import py_compile
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import pocketmq.cli.admin
from pocketmq import Cluster, Message, Producer
from pocketmq.cli.admin import imported_commands, listed_commands

TERMINAL = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}

HEAVY = [
    "numpy", "pocketmq.balance.allocation", "pocketmq.blocking", "pocketmq.broker",
    "pocketmq.client.push", "pocketmq.client.producer", "pocketmq.embedded", "pyspark", "rich",
]  # fmt: skip
PROGRAM = """
import sys
from pocketmq.cli import run
code = run(sys.argv[2:])
print([name for name in sys.argv[1].split() if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        running.create_topic("orders", queues=1)
        yield running


@pytest.mark.parametrize(
    "command",
    [
        "topicList", "topicStatus -t orders", "topicRoute -t orders", "clusterList",
        "consumerProgress", "printMsg -t orders", "statsAll", "getNamesrvConfig",
    ],
)  # fmt: skip
def test_a_command_imports_nothing_heavy(cluster: Cluster, command: str) -> None:
    name, *rest = command.split()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM,
            " ".join(HEAVY),
            "admin",
            name,
            "-n",
            cluster.address,
            *rest,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_list_of_commands_imports_none_of_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "asyncio pocketmq.admin pocketmq.client", "admin", "-h"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert "consumerProgress" in done.stdout


def test_the_list_is_what_the_modules_declare() -> None:
    """The list is read from the sources; where there are none, from the modules themselves."""
    assert listed_commands() == imported_commands()


def test_without_sources_the_commands_are_there_too(tmp_path: Path) -> None:
    """As in a frozen program: compiled modules alone."""
    package = Path(pocketmq.cli.admin.__file__).parent
    for file in package.glob("*.py"):
        compiled = tmp_path / f"{file.stem}.pyc"
        py_compile.compile(str(file), str(compiled), doraise=True)
    program = (
        f"import pocketmq.cli.admin as a; a.__path__ = [{str(tmp_path)!r}]; "
        f"a.__file__ = {str(tmp_path / '__init__.pyc')!r}; print(len(a.listed_commands()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) == len(listed_commands())


def interrupted(process: "subprocess.Popen[bytes]", terminal: int) -> int:
    """Send Ctrl-C and return the exit code; a full terminal would keep the process from its end."""
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # the terminal is gone
        while os.read(terminal, 4096):
            pass
    os.close(terminal)
    return process.wait(60)


def test_top_redraws_itself_on_a_terminal(cluster: Cluster) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pocketmq", "admin", "top", "-n", cluster.address]
    process = subprocess.Popen([*command, "--watch", "0.05"], stdout=theirs, env=TERMINAL)
    os.close(theirs)
    shown = b""
    while shown.count(b"GROUP ") < 3:  # the last table of a picture: three whole pictures
        shown += os.read(ours, 4096)  # fails when the command ends
    assert interrupted(process, ours) == 130
    assert shown.count(b"broker-0") >= 3
    assert b"\x1b[" in shown, "it moves the cursor back instead of printing on"


def test_a_watched_stream_is_printed_as_it_comes_on_a_terminal(cluster: Cluster) -> None:
    cluster.create_topic("watched", queues=1)
    with Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        producer.send(Message("watched", b"hello"))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pocketmq", "admin", "printMsg", "-n", cluster.address]
    words = ["-t", "watched", "--watch", "0.05"]
    process = subprocess.Popen([*command, *words], stdout=theirs, env=TERMINAL)
    os.close(theirs)
    shown = b""
    while shown.count(b"hello") < 3:
        shown += os.read(ours, 4096)  # fails when the command ends
    assert interrupted(process, ours) == 130
    assert b"\x1b[" not in shown, "a stream may be longer than the screen: nothing is redrawn"
