"""The event loop where PocketMQ makes one itself: uvloop for servers, where it is installed.

Servers on the command line and brokers in their own processes use uvloop by default, so does
`pocketmq bench`. Blocking clients use asyncio's loop: they may end with connections open, which
uvloop reports; so does the dashboard, which another library serves. An application's own loop is
its own choice. `POCKETMQ_LOOP` in the environment chooses for all: `asyncio` or `uvloop`.
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


def loop_kind(preferred: str = "uvloop") -> str:
    """Return which loop is made: "uvloop" or "asyncio".

    Without a choice in the environment that is the preferred one, if it is installed.
    Raises `InvalidInput` if the environment asks for an unknown one, or for one that is missing.
    """
    wanted = os.environ.get(CHOICE, "")
    found = sys.platform != "win32" and find_spec("uvloop") is not None
    if not wanted:
        return preferred if found else "asyncio"
    if wanted not in _KINDS:
        raise InvalidInput(f"{CHOICE} is {wanted!r}; it must be {' or '.join(_KINDS)}")
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


def loop_maker(preferred: str = "uvloop") -> NewLoop:
    """Return what makes a loop; the module it comes from is imported by this.

    Raises `InvalidInput` as `loop_kind` does.
    """
    if loop_kind(preferred) == "asyncio":
        return asyncio.new_event_loop
    import uvloop

    make: NewLoop = uvloop.new_event_loop
    return make


def run(work: Coroutine[Any, Any, T], preferred: str = "uvloop") -> T:
    """Run a coroutine to its end on a loop of its own, as `asyncio.run` does."""
    try:
        make = None if loop_kind(preferred) == "asyncio" else loop_maker(preferred)
    except BaseException:
        work.close()
        raise
    with asyncio.Runner(loop_factory=make) as runner:
        return runner.run(work)
