"""Processes' own time: others' use of processors does not count, and all other waits do."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.own_time import own_time


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="the kernel does not count it"
)
def test_time_in_which_another_process_has_the_processor_does_not_count() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # that of what it starts, too
    try:
        busy = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
        with subprocess.Popen(busy, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                other.stdout.readline()  # it is at work
                began, own, worked = time.monotonic(), own_time(other.pid), time.thread_time()
                while time.thread_time() - worked < 0.2:
                    pass
                assert own_time(other.pid) - own < time.monotonic() - began - 0.05
            finally:
                other.kill()
    finally:
        os.sched_setaffinity(0, before)


def test_what_a_process_waited_before_it_ended_is_nobodys_time() -> None:
    """A child that ended in the midst of a measurement made it longer by all that it had waited."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    busy = [sys.executable, "-c", "while True: pass"]
    try:
        with subprocess.Popen(busy) as one, subprocess.Popen(busy) as other:
            worked = time.thread_time()
            while time.thread_time() - worked < 0.2:
                pass
            began, own = time.monotonic(), own_time()
            for each in (one, other):
                each.kill()
                each.wait()
            assert own_time() - own <= time.monotonic() - began
    finally:
        os.sched_setaffinity(0, before)


SLEEP = """
import time
from tests.own_time import own_time
own = own_time()
time.sleep(0.3)
print(own_time() - own)
"""


def test_time_that_a_process_sleeps_counts() -> None:
    """One of its own: children and threads that other tests left may wait meanwhile."""
    words = [sys.executable, "-c", SLEEP]
    run = subprocess.run(
        words, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) > 0.2
