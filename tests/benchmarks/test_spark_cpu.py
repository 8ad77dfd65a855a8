"""The CPU of a tree of processes: what a dead one used stays counted."""

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks._spark_cpu import tree_cpu

from tests.server_process import children_of, wait_for

DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's daemon does it
if os.fork() == 0:
    while time.process_time() < 0.5:
        pass
    print("worked", flush=True)
    sys.stdin.readline()
    os._exit(0)
signal.pause()
"""
JAVA = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux' /proc")
def test_the_time_of_a_worker_that_has_ended_counts() -> None:
    command = [sys.executable, "-c", JAVA, DAEMON]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as java:
        assert java.stdin is not None
        assert java.stdout is not None
        assert java.stdout.readline() == b"worked\n"
        (daemon,) = children_of(java.pid)
        try:
            before = tree_cpu(java.pid)
            java.stdin.write(b"end\n")
            java.stdin.flush()
            wait_for(lambda: not children_of(daemon), "the end of the worker")
            # Linux gives whole ticks of 10 ms, user and system time cut off apart, and samples.
            assert before >= 0.25
            assert tree_cpu(java.pid) >= before
        finally:
            subprocess.run(["kill", str(daemon)], check=True)
