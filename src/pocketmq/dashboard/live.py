"""A page that stays true: parts of it are shown again whenever what they show has changed."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from nicegui import ui

from pocketmq.dashboard.watching import Watch

T = TypeVar("T")

TICK = 1.0
"""Seconds between two looks at what the watches know; these ask the cluster in their own time."""
PATIENCE = 0.8
"""Seconds a page waits for first answers before it is sent without them."""


async def prepare(*watches: Watch[Any]) -> None:
    """Wait a little for first answers, of all watches at once."""
    await asyncio.gather(*(watch.fresh(PATIENCE) for watch in watches))


class Live:
    """The live parts of one open page, and a line that says what is not known.

    Make it inside the frame of a page; parts are shown at once and then with every change.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Watch[Any], Callable[[Any], None]]] = []
        self._seen: dict[int, int] = {}
        self._missing: dict[int, tuple[str, ...]] = {}
        with ui.element("div").classes("pm-warning").props("role=status") as self._box:
            self._warning = ui.label("").classes("pm-warning-text")
        self._box.set_visibility(False)
        ui.timer(TICK, self.tick, immediate=False)

    def show(self, watch: Watch[T], update: Callable[[T], None]) -> None:
        """Call `update` with what a watch knows, now and whenever it has looked again."""
        self._parts.append((watch, update))
        self.tick()

    def missing(self, watch: Watch[Any], named: Iterable[str]) -> None:
        """Say which servers did not tell their part of what a watch shows."""
        self._missing[id(watch)] = tuple(named)

    def tick(self) -> None:
        """Show what has changed."""
        for number, (watch, update) in enumerate(self._parts):
            watch.want()
            if self._seen.get(number) == watch.version:
                continue
            self._seen[number] = watch.version
            if watch.value is not None:
                update(watch.value)
        text = self._unknown()
        if text != self._warning.text:
            self._warning.set_text(text)
            self._box.set_visibility(bool(text))

    def _unknown(self) -> str:
        lines = []
        for watch in {id(part[0]): part[0] for part in self._parts}.values():
            if watch.problem is not None:
                since = time.strftime("%H:%M:%S", time.localtime(watch.at))
                shown = f" Shown is what was known at {since}." if watch.at else ""
                stop = "" if watch.problem.endswith(("?", ".")) else "."
                lines.append(f"No answer: {watch.problem}{stop}{shown}")
            lines += [f"Did not answer: {name}." for name in self._missing.get(id(watch), ())]
        return "\n".join(dict.fromkeys(lines))
