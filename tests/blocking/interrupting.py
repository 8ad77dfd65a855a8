"""Interrupts at chosen steps of a call: each place where Python lets a signal's handler raise.

Python looks for signals when a function begins and when a compiled one has returned; one that waits
may also end with the interrupt instead. Those are events for a profiler, which may raise just then.
"""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

WAITING = frozenset({"acquire", "connect", "poll", "recv", "select", "send", "sendall"})
"""Compiled functions that wait."""


class Interrupt(BaseException):
    """What a signal's handler raises."""


def was_interrupted(call: Callable[[], object], step: int) -> bool:
    """Interrupt a call at one of its steps; return False if it has fewer."""
    left = step

    def profile(frame: FrameType, event: str, called: Any) -> None:
        nonlocal left
        waits = event == "c_call" and called.__name__ in WAITING
        if frame.f_code.co_filename == __file__ or not (
            waits or event in {"call", "c_return", "c_exception"}
        ):
            return
        left -= 1
        if left == 0:
            raise Interrupt

    sys.setprofile(profile)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
    return left <= 0  # what was raised was lost, such as in a destructor


def interrupts(call: Callable[[], object]) -> Iterator[int]:
    """Interrupt a call at its first step, then at its second, and so on; yield after each."""
    step = 1
    while was_interrupted(call, step):
        yield step
        step += 1
