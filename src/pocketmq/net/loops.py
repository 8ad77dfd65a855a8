"""The event loop where PocketMQ makes one itself: asyncio's own, or uvloop where it is asked for.

That is the loop of blocking clients, of embedded clusters and of servers on the command line. An
application's own loop is its own choice. `POCKETMQ_LOOP` in the environment chooses: `asyncio` or
`uvloop`. uvloop is not the default: it reads up to 32 times from one connection before others have
their turn, and reports connections that are open at the exit of the interpreter.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar

from pocketmq.errors import InvalidInput

T = TypeVar("T")

CHOICE = "POCKETMQ_LOOP"
"""The variable of the environment that chooses."""
_KINDS = ("asyncio", "uvloop")

NewLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


def loop_kind() -> str:
    """Return which loop is made: "uvloop" or "asyncio".

    Raises `InvalidInput` if the environment asks for an unknown one, or for one that is missing.
    """
    wanted = os.environ.get(CHOICE, "")
    if not wanted:
        return "asyncio"
    found = sys.platform != "win32" and find_spec("uvloop") is not None
    if wanted not in _KINDS:
        raise InvalidInput(f"{CHOICE} is {wanted!r}; it may be {' or '.join(_KINDS)}")
    if wanted == "uvloop" and not found:
        raise InvalidInput(
            f"{CHOICE} asks for uvloop, which is not installed; run `pip install uvloop`, "
            "or unset the variable"
        )
    return wanted


def loop_description() -> str:
    """Return which loop is made, in words for people: "uvloop 0.22.1" or "asyncio"."""
    kind = loop_kind()
    if kind == "asyncio":
        return kind
    from importlib.metadata import version  # with all of `email` and `zipfile`: a tenth of a start

    return f"uvloop {version('uvloop')}"


def loop_maker() -> NewLoop:
    """Return what makes a loop; the module it comes from is imported by this.

    Raises `InvalidInput` as `loop_kind` does.
    """
    if loop_kind() == "asyncio":
        return asyncio.new_event_loop
    import uvloop

    make: NewLoop = uvloop.new_event_loop
    return make


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a loop of its own, as `asyncio.run` does."""
    try:
        make = None if loop_kind() == "asyncio" else loop_maker()
    except BaseException:
        work.close()
        raise
    with asyncio.Runner(loop_factory=make) as runner:
        return runner.run(work)
