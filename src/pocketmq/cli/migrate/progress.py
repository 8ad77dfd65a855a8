"""Seeing a copy at work, and ending it: one line on a terminal, Ctrl-C after what is under way."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from pocketmq.admin.migration.copy_run import MigrationProgress

_EVERY = 0.5
_CLEAR = "\r\x1b[K"


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Have the first Ctrl-C or SIGTERM ask for an end, and the second one be one."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def asked() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, asked)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def showing_progress(progress: MigrationProgress, *, following: bool) -> AsyncIterator[None]:
    """Show how far it is while it runs: often on a terminal, once it has caught up elsewhere."""
    task = asyncio.create_task(_show(progress, following=following))
    try:
        yield
    finally:
        task.cancel()
        if sys.stderr.isatty():
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


async def _show(progress: MigrationProgress, *, following: bool) -> None:
    loop = asyncio.get_running_loop()
    told, before, then = False, 0, loop.time()
    while True:
        await asyncio.sleep(_EVERY)
        now = loop.time()
        rate = (progress.copied - before) / (now - then)
        before, then = progress.copied, now
        if sys.stderr.isatty():
            text = f"{progress.copied} messages copied, {progress.behind} to go, {rate:.0f}/s" + (
                ", following" if following and progress.caught_up else ""
            )
            sys.stderr.write(_CLEAR + text)
            sys.stderr.flush()
        elif following and progress.caught_up and not told:
            told = True
            sys.stderr.write(f"caught up after {progress.copied} messages; following\n")
            sys.stderr.flush()
