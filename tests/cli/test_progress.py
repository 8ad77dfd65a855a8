"""Progress of long commands: on a terminal after two seconds, elsewhere never."""

import io
import os
import pty
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pocketmq import Cluster, Message, Producer
from pocketmq.broker.upkeep.stored_formats import check_broker_store
from pocketmq.cli import run
from pocketmq.cli.progress import PATIENCE, amount, clock_text, figures
from tests.server_process import POCKETMQ, wait_for

TERMINAL = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}


class Screen:
    """What a command writes to a terminal."""

    def __init__(self, reading: int) -> None:
        self.text = ""
        self._reading = reading
        self.thread = threading.Thread(target=self._gather)
        self.thread.start()

    def _gather(self) -> None:
        try:
            while piece := os.read(self._reading, 4096):
                self.text += piece.decode(errors="replace")
        except OSError:  # Linux's end of a terminal
            return


@contextmanager
def screen() -> Iterator[tuple[int, Screen]]:
    reading, terminal = pty.openpty()
    shown = Screen(reading)
    try:
        yield terminal, shown
    finally:
        os.close(terminal)
        shown.thread.join(10)
        os.close(reading)


def test_a_long_command_shows_what_is_done_the_rate_and_the_time_left() -> None:
    with Cluster() as cluster, screen() as (terminal, shown):
        words = ["produce", "-n", cluster.address, "-t", "orders", "--count", "3"]
        with subprocess.Popen(
            [str(POCKETMQ), *words], stdin=subprocess.PIPE, stderr=terminal, env=TERMINAL
        ) as child:
            assert child.stdin is not None
            child.stdin.write(b"one\ntwo\n")
            child.stdin.flush()
            bar = re.compile(r"sending[^\r\n]* of 3 messages, [^\r\n]*/s, [^\r\n]* left")
            wait_for(lambda: bar.search(shown.text), "a bar")
            child.stdin.write(b"three\n")
        assert child.returncode == 0


def shown_by(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[float, str]:
    """Run a command in this process; return how long it took, and what it showed on a terminal."""
    with screen() as (terminal, shown):
        with os.fdopen(os.dup(terminal), "w") as stderr, monkeypatch.context() as replaced:
            replaced.setattr(sys, "stderr", stderr)
            replaced.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
            began = time.monotonic()
            assert run(list(words)) == 0
            took = time.monotonic() - began
        os.write(terminal, b"the end")
        wait_for(lambda: "the end" in shown.text, "all that was shown")
    return took, shown.text.removesuffix("the end")


def test_a_short_command_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: to start one takes longer, on a busy machine, than a command is short."""
    with Cluster() as cluster:
        for _ in range(10):
            words = ("produce", "-n", cluster.address, "-t", "orders")
            took, shown = shown_by(monkeypatch, *words)
            if took < PATIENCE:
                break
        assert shown == ""


def test_a_command_whose_errors_go_to_a_file_shows_none() -> None:
    with Cluster() as cluster:
        command = [str(POCKETMQ), "produce", "-n", cluster.address, "-t", "orders"]
        with subprocess.Popen(
            [*command, "--receipts"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stdin is not None
            threading.Timer(3.0, child.stdin.close).start()
            assert child.stderr is not None
            assert child.stderr.read() == b""


def test_an_admin_command_that_waits_shows_since_when() -> None:
    """A name server that accepts connections and does not respond."""
    with socket.create_server(("127.0.0.1", 0)) as deaf, screen() as (terminal, shown):
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        words = ["admin", "topicList", "-n", address, "--timeout", "100"]
        with subprocess.Popen([str(POCKETMQ), *words], stderr=terminal, env=TERMINAL) as child:
            wait_for(lambda: "pocketmq admin topicList" in shown.text, "a sign of life")
            child.terminate()


def test_checking_a_store_reports_the_bytes_of_its_log(tmp_path: Path) -> None:
    with (
        Cluster(data=tmp_path) as cluster,
        Producer(cluster.address, group="shop", send_timeout=30.0) as producer,
    ):
        for _ in range(6):
            producer.send_batch([Message("orders", b"x")] * 500)
    told: list[tuple[int, int]] = []
    (store,) = (path.parent for path in tmp_path.rglob("commitlog"))
    report = check_broker_store(store, lambda done, whole: told.append((done, whole)))
    assert report.sound
    assert len(told) >= 3
    done = [each for each, _ in told]
    assert done == sorted(done)
    assert all(0 < each < whole for each, whole in told)


@pytest.mark.parametrize(
    ("count", "unit", "text"),
    [
        (1200, "messages", "1,200 messages"),
        (1200.4, "", "1,200"),
        (999, "bytes", "999 B"),
        (1500, "bytes", "1.5 kB"),
        (2_500_000, "bytes", "2.5 MB"),
        (1.2e12, "bytes", "1,200.0 GB"),
    ],
)
def test_amounts_are_short(count: float, unit: str, text: str) -> None:
    assert amount(count, unit) == text


@pytest.mark.parametrize(("seconds", "text"), [(5.9, "0:05"), (65, "1:05"), (3723, "1:02:03")])
def test_times_are_as_on_a_clock(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_figures_tell_the_rate_and_the_time_left_or_so_far() -> None:
    assert figures(500, 2000, "messages", 10.0) == "500 of 2,000 messages, 50/s, 0:30 left"
    assert figures(500, None, "messages", 10.0) == "500 messages, 50/s, 0:10"
    assert figures(5e6, 2e7, "bytes", 10.0) == "5.0 MB of 20.0 MB, 500.0 kB/s, 0:30 left"
    assert figures(0, None, "", 10.0) == "0:10"
