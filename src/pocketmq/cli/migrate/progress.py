"""The progress of a copy on stderr: rich's bar on a terminal, one line when piped."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from pocketmq.admin.migration.copy_run import MigrationProgress

if TYPE_CHECKING:
    from rich.progress import Progress

_EVERY = 0.5


@asynccontextmanager
async def showing_progress(counts: MigrationProgress, *, following: bool) -> AsyncIterator[None]:
    """Show how far a copy is while it runs."""
    bar = _bar() if sys.stderr.isatty() else None
    if bar is None and not following:
        yield
        return
    with nullcontext() if bar is None else bar:
        work = _announce(counts) if bar is None else _draw(counts, bar, following=following)
        task = asyncio.create_task(work)
        try:
            yield
        finally:
            task.cancel()


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:,} of {task.total:,} messages, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


async def _draw(counts: MigrationProgress, bar: "Progress", *, following: bool) -> None:
    task = bar.add_task("copying", total=counts.behind, rate=0.0)
    loop = asyncio.get_running_loop()
    before, then = counts.copied, loop.time()
    while True:
        await asyncio.sleep(_EVERY)
        now = loop.time()
        rate = (counts.copied - before) / (now - then)
        before, then = counts.copied, now
        bar.update(
            task,
            description="following" if following and counts.caught_up else "copying",
            completed=counts.copied,
            total=counts.copied + counts.behind,
            rate=rate,
        )


async def _announce(counts: MigrationProgress) -> None:
    """Report once that a copy has caught up."""
    while True:
        await asyncio.sleep(_EVERY)
        if counts.caught_up:
            break
    sys.stderr.write(f"caught up after {counts.copied} messages; following\n")
    sys.stderr.flush()
