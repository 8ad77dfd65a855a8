"""Progress of commands that take longer than two seconds: rich's bar on stderr.

With a total it has a bar, the rate and the time left; without, the count, the rate and the time so
far. Nothing is shown, and rich is not imported, if stderr is not a terminal or the work is short.
"""

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pocketmq.cli.output import printable

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

PATIENCE = 2.0
"""Seconds after which a command shows its progress."""


class ProgressBar:
    """The progress of one command, for use with `with`; it is gone afterwards.

    Calls may come from any thread; `update` is cheap enough for every message.
    """

    def __init__(
        self, text: str, unit: str = "", *, after: float = PATIENCE, wanted: bool = True
    ) -> None:
        self._text, self._unit, self._after = text, unit, after
        self._wanted = wanted and sys.stderr.isatty()
        self._done, self._total = 0, 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._over = False
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._wanted:
            if self._after > 0:
                self._timer = threading.Timer(self._after, self._show)
                self._timer.daemon = True
                self._timer.start()
            else:
                self._show()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove it from the terminal; harmless if it is not there."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def say(self, text: str) -> None:
        """Replace the text before the bar."""
        self._text = text
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=printable(text))

    def update(self, done: int, total: int = 0) -> None:
        """Set how much is done, and of how much if that is known."""
        self._done, self._total = done, total
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total or None)

    def _show(self) -> None:
        bar = _bar(self._unit, self._began)
        with self._lock:
            if self._over:
                return
            self._task = bar.add_task(
                printable(self._text), completed=self._done, total=self._total or None
            )
            self._bar = bar
            bar.start()


def _bar(unit: str, began: float) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.text import Text

    class Figures(ProgressColumn):
        """How much of how much, and how fast."""

        def render(self, task: "Task") -> Text:
            return Text(figures(task.completed, task.total, unit, time.monotonic() - began))

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        Figures(),
        console=Console(stderr=True, highlight=False, emoji=False),
        transient=True,
    )


def figures(done: float, total: float | None, unit: str, took: float) -> str:
    """Return what stands behind a bar after `took` seconds."""
    if not done or not took:
        return clock_text(took)
    speed = done / took
    if total is None:
        return f"{amount(done, unit)}, {amount(speed, _per(unit))}/s, {clock_text(took)}"
    left = clock_text(max(total - done, 0) / speed)
    counted = amount(done, _per(unit))
    return f"{counted} of {amount(total, unit)}, {amount(speed, _per(unit))}/s, {left} left"


def _per(unit: str) -> str:
    """Return what a number beside one with its unit has: bytes have prefixes of their own."""
    return unit if unit == "bytes" else ""


def amount(count: float, unit: str) -> str:
    """Return a count with its unit: `1,200 messages`, `3.5 MB`."""
    if unit != "bytes":
        return f"{count:,.0f} {unit}".rstrip()
    for name in ("B", "kB", "MB", "GB"):
        if count < 1000 or name == "GB":
            return f"{count:,.1f} {name}" if name != "B" else f"{count:,.0f} B"
        count /= 1000
    raise AssertionError("unreachable")


def clock_text(seconds: float) -> str:
    """Return a duration as `0:05` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
