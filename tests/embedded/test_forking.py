"""Broker processes by fork: only where it is safe, and with nothing inherited but what is needed."""

import subprocess
import sys
import threading

from pocketmq.embedded.child_process import how_it_ended
from pocketmq.embedded.forking import fork_brokers

PROGRAM = """
import os
from pathlib import Path
from pocketmq.embedded.forking import fork_brokers

processes = fork_brokers(["a", "b", "c"])
for process in processes.values():
    files = {entry.name for entry in Path(f"/proc/{process.pid}/fd").iterdir()}
    while files != {"0", "1", "2"}:  # it is still closing what is not its own
        files = {entry.name for entry in Path(f"/proc/{process.pid}/fd").iterdir()}
for process in processes.values():
    process.stdin.close()
    assert process.stdout.read() == b""
    process.stdout.close()
    assert os.waitpid(process.pid, 0)[1] == 0
print(len(processes), "came and went")
"""


def test_each_child_ends_when_its_own_pipe_does_whatever_its_siblings_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("3 came and went\n", "")


def test_a_process_with_threads_does_not_fork() -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        assert fork_brokers(["a"]) == {}
    finally:
        done.set()
        other.join()


def test_an_end_is_told_in_words() -> None:
    assert how_it_ended(0) == "ended with exit code 0"
    assert how_it_ended(3) == "ended with exit code 3"
    assert how_it_ended(-9) == "was killed by SIGKILL"
    assert how_it_ended(-63) == "was killed by signal 63"
