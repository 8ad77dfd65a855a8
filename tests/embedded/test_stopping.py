"""A request to stop counts once, at whatever moment the signal comes."""

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, os, signal, sys
import {loop} as chosen
from pocketmq.embedded import own_process
from pocketmq.embedded.stopping import StopRequests

HANDS_OVER = ("__enter__", "add_signal_handler")

def forced():
    print("forced at line", at)
    os._exit(1)

async def serve(at):
    seen = 0
    def trace(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_name not in HANDS_OVER:
            return None
        if event == "line":
            if seen == at:
                os.kill(os.getpid(), signal.SIGTERM)
            seen += 1
        return trace
    requests = StopRequests(forced)
    sys.settrace(trace)
    requests.__enter__()
    sys.settrace(None)
    if seen > at:
        await asyncio.wait_for(requests.wait(), 10)
        await asyncio.sleep(0.02)  # whatever else the loop has read is handled by then
    requests.__exit__(None, None, None)
    return seen > at

at = 0
while True:
    own_process._asked = False
    own_process.remember_stop_signals()
    if not chosen.run(serve(at)):
        break
    at += 1
print(at)
"""


@pytest.mark.parametrize(("loop", "lines"), [("asyncio", 30), ("uvloop", 8)])
def test_a_signal_while_the_loop_takes_over_counts_once(loop: str, lines: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{loop}", loop)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > lines  # every line of the hand-over was tried
