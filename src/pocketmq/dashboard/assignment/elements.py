"""The page's own elements: queue map, timeline and what-if.

NiceGUI has no element for them: its charts draw neither ten thousand queues that can be filtered at
60 frames a second, nor parts that the keyboard and screen readers reach one by one. Whatever a
browser sends is checked.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from pocketmq.balance.strategies import strategy_by_name
from pocketmq.balance.what_if import BrokerDown, Event, MemberJoined, MemberLeft, StrategyChanged
from pocketmq.dashboard.assignment.experiment import COMPARED
from pocketmq.dashboard.assignment.queue_map import QueueMapData, patch

MOST_ASKED = 100
MOST_EVENTS = 20
LONGEST_NAME = 255


class _Canvas(
    Element, component="queue_map.js", esm={"pocketmq-assignment": "drawing"}
):  # fmt: skip
    """The queue map in the browser."""


class _Timeline(Element, component="timeline.js"):
    """The timeline in the browser."""


class _Experiment(Element, component="what_if.js"):
    """The what-if in the browser."""


class QueueMap:
    """A queue map on a page. `show` sends what has changed."""

    def __init__(self, label: str, *, bar: bool, empty: str = "") -> None:
        self._sent: QueueMapData | None = None
        self._latest: QueueMapData | None = None
        self._ready = False
        self._why: Callable[[int], str] = lambda _: ""
        self.element = _Canvas()
        self.element.props.update(label=label, bar=bar, empty=empty)
        self.element.on("ready", self._begin, args=[]).on("ask", self._answer)

    def show(self, data: QueueMapData, why: Callable[[int], str]) -> None:
        """Show this map from now on; `why` explains the queue at a position."""
        self._latest, self._why = data, why
        if not self._ready:
            return
        changes = patch(self._sent, data)
        self._sent = data
        if "whole" in changes:
            self.element.run_method("load", changes["whole"])
        elif changes:
            self.element.run_method("patch", changes)

    def say_empty(self, text: str) -> None:
        """Set the text that is shown without queues."""
        if self.element.props["empty"] != text:
            self.element.props["empty"] = text
            self.element.update()

    def _begin(self, _: GenericEventArguments) -> None:
        """Send everything: the browser has just made the element, perhaps again."""
        self._ready, self._sent = True, None
        if self._latest is not None:
            self.show(self._latest, self._why)

    def _answer(self, event: GenericEventArguments) -> None:
        if self._latest is None or not isinstance(event.args, list):
            return
        count = len(self._latest.owner)
        positions = [each for each in event.args[:MOST_ASKED] if type(each) is int]
        known = [[each, self._why(each)] for each in positions if 0 <= each < count]
        self.element.run_method("explain", known)


class TimelineView:
    """The timeline on a page."""

    def __init__(self, picked: Callable[[int], dict[str, Any] | None]) -> None:
        self._told: dict[str, Any] = {}
        self._chosen: int | None = None
        self._picked = picked
        self.element = _Timeline()
        self.element.props.update(
            {
                "entries": [],
                "from": 0,
                "to": 0,
                "total": [],
                "top": [],
                "pauses": [],
                "unobserved": [],
            }
        )
        self.element.on("pick", self._pick)

    def show(self, told: dict[str, Any]) -> None:
        """Show this, if it has changed."""
        if self._chosen is not None:
            told = told | {"detail": self._picked(self._chosen)}
        if told != self._told:
            self._told = told
            self.element.props.update(told)
            self.element.update()

    def _pick(self, event: GenericEventArguments) -> None:
        if type(event.args) is int:
            self._chosen = event.args
            self.element.props["detail"] = self._picked(event.args)
            self.element.update()


class Experiment:
    """The what-if on a page."""

    def __init__(self, tried: Callable[[list[Event]], Awaitable[None]]) -> None:
        self._tried = tried
        self._told: dict[str, Any] = {}
        self.element = _Experiment()
        self.element.on("try", self._try)
        self.offer([], [])

    def offer(self, members: list[str], brokers: list[str]) -> None:
        """Set the members and brokers that events may name."""
        told = {"members": members, "brokers": brokers, "strategies": list(COMPARED)}
        if told != self._told:
            self._told = told
            self.element.props.update(told)
            self.element.update()

    def answer(self, result: dict[str, Any] | None, problem: str = "") -> None:
        """Show the result."""
        self.element.props.update(result=result, problem=problem)
        self.element.update()

    async def _try(self, event: GenericEventArguments) -> None:
        if isinstance(event.args, list):
            read = [_event(each) for each in event.args[:MOST_EVENTS]]
            await self._tried([each for each in read if each is not None])


def _event(told: object) -> Event | None:
    match told:
        case ["join", str() as member]:
            return MemberJoined(member[:LONGEST_NAME])
        case ["leave", str() as member]:
            return MemberLeft(member[:LONGEST_NAME])
        case ["broker_down", str() as broker]:
            return BrokerDown(broker[:LONGEST_NAME])
        case ["switch_to", str() as name] if name in COMPARED:
            return StrategyChanged(strategy_by_name(name))
        case _:
            return None
