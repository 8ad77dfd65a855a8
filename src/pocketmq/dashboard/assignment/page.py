"""The page `/groups/{group}/assignment`: a group's queues and members, live."""

import asyncio
import time
from pathlib import Path
from typing import Any

from fastapi import Request
from nicegui import ui

from pocketmq.admin.findings import GroupFinding
from pocketmq.admin.sticky_story import StickyStory
from pocketmq.balance.story.episode import Rebalance
from pocketmq.balance.what_if import Event
from pocketmq.dashboard.assignment import snapshots
from pocketmq.dashboard.assignment.elements import Experiment, QueueMap, TimelineView
from pocketmq.dashboard.assignment.experiment import Trial, try_events
from pocketmq.dashboard.assignment.summary_text import grouped, lag_text, standing, trial_result
from pocketmq.dashboard.assignment.timeline_text import entry_detail, queue_name
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import UNKNOWN, count, link_to
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.handover_words import STATES, mode_name, mode_note, mode_words
from pocketmq.dashboard.parts import Tiles
from pocketmq.dashboard.polling import Poller
from pocketmq.dashboard.remembered import passing_text
from pocketmq.errors import MQError
from pocketmq.model import BalanceMode

_STYLE = Path(__file__).with_name("assignment.css")
_TICK = 0.25
"""Seconds between two checks for a new snapshot."""


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/groups/{group}/assignment")
    async def assignment(group: str, request: Request) -> None:
        desk = desks.of(request)
        await show(desk, request, group)


async def show(desk: Desk, request: Request, group: str) -> None:
    """Show the live assignment of a group."""
    poller = poller_of(desk, group)
    await prepare(poller)
    ui.add_css(_STYLE)
    path = (("Groups", "/groups"), (group, link_to("groups", group)))
    with frame(desk, request, f"Assignment of {group}", here="/groups", path=path):
        _Page(poller)


def poller_of(desk: Desk, group: str) -> Poller[snapshots.GroupSnapshot]:
    """Return the one poller of a group that all viewers share."""
    return snapshots.poller_of(desk.views.pollers, desk.admin, group)


class _Page:
    """One open page."""

    def __init__(self, poller: Poller[snapshots.GroupSnapshot]) -> None:
        self._poller = poller
        self._events: list[Event] = []
        self._found: tuple[tuple[GroupFinding, ...], str] | None = None
        self._told: tuple[Rebalance, dict[str, Any]] | None = None
        live = LivePage()
        self._standing = ui.label("Loading …").classes("as-standing")
        self._standing.props("role=status")
        self._mode = ui.label("").classes("pm-note")
        self._tiles = Tiles(
            ("members", "Members", None),
            ("queues", "Queues", None),
            ("strategy", "Strategy", None),
            ("mode", "Hand-over", None),
            ("open", "Unowned queues", None),
            ("lag", "Lag", None),
            ("last", "Last rebalance", None),
        )
        with ui.element("div").classes("as-columns") as self._columns:
            with ui.element("div").classes("as-main"):
                self._map_card()
                self._timeline_card()
            with ui.element("div").classes("as-side"):
                self._findings_card()
                self._experiment_card()
        self._columns.set_visibility(False)
        live.show(poller, self._show)
        self._judge()
        ui.timer(_TICK, live.tick)
        ui.timer(_TICK, self._judge)

    def _judge(self) -> None:
        """Grey out what is shown while the last poll failed."""
        poller = self._poller
        if poller.value is None and poller.problem is not None:
            text = "No data for this group."
            if self._standing.text != text:
                self._standing.set_text(text)
        old = poller.problem is not None
        self._columns.classes(add="as-old" if old else "", remove="" if old else "as-old")

    def _map_card(self) -> None:
        with ui.element("section").classes("pm-card as-picture"):
            heading("Queue assignment")
            self._map = QueueMap(
                "Queues and their owners",
                bar=True,
                empty="No queues.",
            )
            with ui.element("div").classes("as-key").props('aria-label="Key"'):
                for name, text in (
                    ("unowned", "no owner"),
                    ("unknown", "unknown owner"),
                    ("several", "several owners"),
                    ("wrong", "not where the strategy puts it"),
                    ("lag", "number and bar: lag"),
                ):
                    _key(name, text)
            with ui.element("div").classes("as-key") as self._states:
                self._states.props('aria-label="States of a hand-over"')
                for stage, text in STATES.items():
                    _key(f"state as-key-{stage.value.replace(' ', '-')}", text)
            self._states.set_visibility(False)

    def _timeline_card(self) -> None:
        with ui.element("section").classes("pm-card"):
            heading("History")
            self._timeline = TimelineView(self._detail)

    def _findings_card(self) -> None:
        with ui.element("section").classes("pm-card as-findings"):
            heading("Problems")
            self._findings = ui.element("div").props("aria-live=polite")

    def _experiment_card(self) -> None:
        with ui.element("section").classes("pm-card as-experiment"):
            heading("What if")
            self._experiment = Experiment(self._try)
            with ui.element("div").classes("as-pair") as self._pair:
                with ui.element("div"):
                    self._before_title = ui.label("Before").classes("as-pair-title")
                    self._before = QueueMap("Before the events", bar=False)
                with ui.element("div"):
                    self._after_title = ui.label("After").classes("as-pair-title")
                    self._after = QueueMap("After the events; moved queues are outlined", bar=False)
            self._pair.set_visibility(False)

    def _show(self, snapshot: snapshots.GroupSnapshot) -> None:
        self._columns.set_visibility(True)
        text = standing(snapshot)
        if text != self._standing.text:
            self._standing.set_text(text)
        self._show_tiles(snapshot)
        self._show_mode(snapshot.story.sticky)
        stories = snapshot.story.queues
        self._map.say_empty("No queues." if snapshot.moment.shared else text)
        self._map.show(snapshot.queue_map, lambda position: stories[position].why)
        self._timeline.show(_timeline(snapshot))
        self._show_findings(snapshot)
        brokers = sorted({queue.broker_name for queue in snapshot.moment.owners})
        self._experiment.offer(list(snapshot.story.members), brokers)

    def _show_tiles(self, snapshot: snapshots.GroupSnapshot) -> None:
        now, tiles = snapshot.moment, self._tiles
        silent = len(now.untold)
        tiles.show("members", count(len(now.members)), f"{silent} not reporting" if silent else "")
        tiles.show("queues", count(len(now.owners)))
        strategy = snapshot.story.strategy if now.shared else "none"
        tiles.show("strategy", (strategy or "no match") if now.members else UNKNOWN)
        tiles.show("mode", mode_name(snapshot.story.sticky), mode_note(snapshot.story.sticky))
        unowned = sum(held == () for held in now.owners.values()) if now.shared else 0
        unknown = sum(held is None for held in now.owners.values())
        note = f"{count(unknown)} unknown" if unknown else ""
        wrong = 0 if snapshot.passing else unowned
        tiles.show("open", count(unowned) if now.shared else "–", note, bad=wrong)
        tiles.show("lag", lag_text(snapshot))
        last = snapshot.rebalances[-1] if snapshot.rebalances else None
        if last is None:
            tiles.show("last", "none", f"since {_clock(snapshot.began)}")
        else:
            moved = snapshot.timeline[-1]["sum"].partition(" · ")[0]
            tiles.show("last", _clock(last.began), moved)

    def _show_mode(self, story: StickyStory | None) -> None:
        self._states.set_visibility(story is not None and story.mode is not BalanceMode.JAVA)
        text = "" if story is None else " ".join(mode_words(story))
        if text != self._mode.text:
            self._mode.set_text(text)

    def _show_findings(self, snapshot: snapshots.GroupSnapshot) -> None:
        passing = passing_text(snapshot.passing)
        if (snapshot.findings, passing) == self._found:
            return
        self._found = snapshot.findings, passing
        self._findings.clear()
        with self._findings:
            if passing:
                ui.label(passing).classes("pm-note")
            elif not snapshot.findings:
                ui.label("No problems found.").classes("pm-note")
            for title, seen, cure in grouped(snapshot.findings):
                with ui.element("article").classes("as-finding"):
                    with ui.element("h3"):
                        ui.label(title).classes("pm-inline")
                    for line in seen:
                        ui.label(line)
                    ui.label(f"Fix: {cure}").classes("pm-note")

    def _detail(self, number: int) -> dict[str, Any] | None:
        snapshot = self._poller.value
        entries = [] if snapshot is None else snapshot.rebalances
        entry = next((each for each in entries if each.number == number), None)
        if entry is None:
            return None
        if self._told is None or self._told[0] is not entry:
            self._told = entry, entry_detail(entry)
        return self._told[1]

    async def _try_now(self, snapshot: snapshots.GroupSnapshot) -> Trial:
        seats = {each.name: each.seat for each in snapshot.queue_map.members}
        arguments = (snapshot.facts, snapshot.story.strategy, tuple(self._events), seats)
        if len(snapshot.queue_map.owner) > snapshots.LARGE:
            return await asyncio.to_thread(try_events, *arguments)
        return try_events(*arguments)

    async def _try(self, events: list[Event]) -> None:
        self._events = events
        snapshot = self._poller.value
        self._pair.set_visibility(False)
        if snapshot is None or not events:
            self._experiment.answer(None)
            return
        if not snapshot.story.members:
            self._experiment.answer(
                None, "The group has no members, so there is nothing to assign."
            )
            return
        try:
            trial = await self._try_now(snapshot)
        except MQError as error:
            self._experiment.answer(None, str(error))
            return
        self._experiment.answer(trial_result(trial))
        if snapshot.story.strategy is None:
            self._before_title.set_text(f"Before, with {trial.strategy}")
        else:
            self._before_title.set_text("Before")
        self._before.show(trial.before, lambda _: "")
        self._after.show(trial.after, lambda _: "")
        self._pair.set_visibility(True)


def _key(name: str, text: str) -> None:
    """Add an entry to a legend."""
    with ui.element("span"):
        ui.element("i").classes(f"as-key-{name}").props("aria-hidden=true")
        ui.label(text).classes("pm-inline")


def _timeline(snapshot: snapshots.GroupSnapshot) -> dict[str, Any]:
    first = snapshot.total_lag[0][0] if snapshot.total_lag else snapshot.began
    return {
        "entries": snapshot.timeline,
        "from": first,
        "to": snapshot.at,
        "total": snapshot.total_lag,
        "top": [
            {"name": queue_name(queue), "points": series} for queue, series in snapshot.top_lags
        ],
        "unobserved": [span for span in snapshot.unobserved if span[1] >= first],
        "pauses": [span for span in snapshot.open_spans if span[1] >= first],
        "nothing": f"No rebalance since {_clock(snapshot.began)}, when observation began.",
    }


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S %z", time.localtime(at))
