"""One group: its problems, members, queues with owner and lag; resetting its offsets."""

from datetime import datetime

from fastapi import Request
from nicegui import ui

from pocketmq.admin.explaining import QueueStory
from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.findings import GroupFinding
from pocketmq.admin.offsets import LATEST, ResetResult
from pocketmq.admin.sticky_story import StickyStory
from pocketmq.dashboard import handover_words, parts
from pocketmq.dashboard.charts import ChartCard
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import NEVER, UNKNOWN, count, link_to, moment
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.pages import group_tables as rows
from pocketmq.dashboard.pages.change_dialogs import change_group, delete_group
from pocketmq.dashboard.pages.missing import show_if_found
from pocketmq.dashboard.recording import Points
from pocketmq.dashboard.remembered import passing_text
from pocketmq.dashboard.table import LiveTable
from pocketmq.dashboard.views import GroupView
from pocketmq.model import BalanceMode, GroupConfig
from pocketmq.model.names import is_retry_topic


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/groups/{group}")
    async def group_page(request: Request, group: str) -> None:
        desk = desks.of(request)
        poller = desk.views.group(group)
        await prepare(poller, desk.views.group_configs())
        with frame(desk, request, group, here="/groups", path=(("Groups", "/groups"),)):
            show_if_found(
                poller, lambda: _GroupPage(desk, request, group), back=("All groups", "/groups")
            )


class _GroupPage:
    """The open page."""

    def __init__(self, desk: Desk, request: Request, group: str) -> None:
        self._desk = desk
        self._group = group
        self._who = parts.visitor(request)
        self._live = LivePage()
        self._findings: tuple[tuple[GroupFinding, ...], str] | None = None
        self._facts: GroupFacts | None = None
        self._configs: list[rows.Setting] = []
        self._tiles = parts.Tiles(
            ("members", "Members", None),
            ("lag", "Lag", None),
            ("queues", "Queues", None),
            ("strategy", "Strategy", None),
            ("handover", "Hand-over", None),
            ("model", "Mode", None),
        )
        with ui.element("div").classes("pm-buttons"):
            link = ui.link("Live assignment", link_to("groups", group, "assignment"))
            link.classes("pm-button pm-primary")
            ui.link("Dead letters", link_to("dead-letters", group)).classes("pm-button")
            parts.action_button(desk, "Reset offsets", self._reset)
            parts.action_button(desk, "Rebalance now", self._rebalance)
            parts.action_button(desk, "Change settings", self._change)
            parts.action_button(desk, "Delete group", self._delete)
        with parts.card("Problems") as self._box:
            ui.label("…")
        with ui.element("div").classes("pm-columns"):
            with ui.element("div"):
                self._lag_chart = ChartCard("Lag", self._lags)
            with ui.element("div"):
                self._rate_chart = ChartCard("Messages out per second", self._rates, " /s")
        with parts.card("Hand-over") as self._handover:
            pass
        self._told: list[str] | None = None
        heading("Members")
        self._members = LiveTable[rows.MemberRow](
            "Members", rows.MEMBER_COLUMNS, sorted_by=0,
            key=lambda row: row.client, search=lambda row: row.client,
            empty="The group has no members; its messages accumulate.",
        )  # fmt: skip
        heading("Queues")
        self._queues = LiveTable[rows.QueueRow](
            "Queues", rows.QUEUE_COLUMNS, key=lambda row: row.name, search=lambda row: row.text,
            empty="No member has a subscription.",
        )  # fmt: skip
        heading("Settings")
        self._settings = LiveTable[rows.Setting](
            "Settings", rows.SETTING_COLUMNS, key=lambda row: row[0]
        )
        self._live.show(desk.views.group(group), self._show)
        self._live.show(desk.views.group_configs(), self._show_settings)
        if not desk.settings.sampling:  # else the rate is sampled
            self._live.show(desk.views.groups(), lambda _: None)

    def _lags(self, since: float) -> dict[str, Points]:
        return {"lag": self._desk.views.group_lags.since(self._group, since)}

    def _rates(self, since: float) -> dict[str, Points]:
        return {"out": self._desk.views.group_rates.since(self._group, since)}

    def _draw(self) -> None:
        self._lag_chart.show()
        self._rate_chart.show()

    def _show(self, view: GroupView) -> None:
        facts, told = view.facts, view.explanation
        self._facts = facts
        self._draw()
        self._live.missing(
            self._desk.views.group(self._group),
            [f"{broker}: {reason}" for broker, reason in sorted(facts.unseen_brokers.items())],
        )
        self._tiles.show("members", count(len(told.members)) if facts.views else UNKNOWN)
        self._tiles.show("lag", _lag(told.queues))
        self._tiles.show("queues", count(len(told.queues)))
        self._tiles.show("strategy", told.strategy or (UNKNOWN if told.members else NEVER))
        settled = told.sticky is None or told.sticky.balanced
        note_below = "" if settled else handover_words.mode_note(told.sticky)
        self._tiles.show("handover", handover_words.mode_name(told.sticky), note_below)
        self._tiles.show("model", _model(view))
        self._show_handover(told.sticky)
        self._members.show(rows.member_rows(facts))
        self._queues.show(rows.queue_rows(view))
        shown = told.findings, passing_text(view.passing)
        if shown != self._findings:
            self._findings = shown
            _show_findings(self._box, *shown)

    def _show_handover(self, story: StickyStory | None) -> None:
        told = [] if story is None else handover_words.mode_words(story)
        if told == self._told:
            return
        self._told = told
        self._handover.clear()
        with self._handover:
            for line in told or ["Queues change hands as in Java."]:
                ui.label(line)
            if story is not None and story.mode is not BalanceMode.JAVA:
                parts.note("States that the table of queues may show:")
                with ui.element("ul"):
                    for text in handover_words.STATES.values():
                        with ui.element("li"):
                            ui.label(text).classes("pm-inline")

    def _show_settings(self, configs: dict[str, dict[str, GroupConfig]]) -> None:
        self._configs = sorted(configs.get(self._group, {}).items())
        self._settings.show(self._configs)

    async def _change(self) -> None:
        if not self._configs:
            ui.notify("The settings are not known yet.", type="warning")
            return
        await change_group(self._desk, self._who, self._group, self._configs[0][1])

    async def _delete(self) -> None:
        members = UNKNOWN if self._facts is None else count(len(self._facts.members()))
        await delete_group(self._desk, self._who, self._group, members)

    async def _rebalance(self) -> None:
        consequences = [
            f"Every member of {self._group} checks its queue assignment now.",
            "Queues that are assigned correctly stay with their owners.",
        ]
        if await parts.confirm(f"Rebalance {self._group} now?", consequences, "Rebalance"):
            work = self._desk.actions.rebalance(self._who, self._group)
            await parts.perform(work, lambda brokers: f"{brokers} brokers notified the members.")

    async def _reset(self) -> None:
        facts = self._facts
        known = set() if facts is None else {*facts.queues, *(q.topic for q in facts.progress)}
        topics = sorted(known, key=lambda topic: (is_retry_topic(topic), topic))
        await OffsetResetDialog(self._desk, self._who, self._group, topics).ask()


def _lag(queues: tuple[QueueStory, ...]) -> str:
    known = [max(0, queue.lag) for queue in queues if queue.lag is not None]
    if len(known) == len(queues):
        return count(sum(known))
    return f"≥ {count(sum(known))}" if known else UNKNOWN


def _model(view: GroupView) -> str:
    model = view.explanation.model
    return NEVER if model is None else model.value.lower().replace("_", " ")


def _show_findings(box: ui.element, findings: tuple[GroupFinding, ...], passing: str) -> None:
    box.clear()
    with box:
        if passing:
            parts.note(passing)
        elif not findings:
            ui.label("No problems: every queue is assigned as the strategy says.").classes("pm-ok")
        for finding in findings:
            with ui.element("div").classes("pm-finding"):
                ui.label(f"{finding.kind}: {finding.subject}").classes("pm-finding-kind")
                ui.label(finding.evidence)
                ui.label(finding.cure).classes("pm-note")


FIRST, LAST, AT = "First message (earliest)", "End of the queue (latest)", "A time"


class OffsetResetDialog:
    """Asks for topic and position, then for confirmation, then resets."""

    def __init__(self, desk: Desk, who: str, group: str, topics: list[str]) -> None:
        self._desk = desk
        self._who = who
        self._group = group
        self._topics = topics

    async def ask(self) -> None:
        """Run the dialog."""
        if not self._topics:
            ui.notify(f"{self._group} has not consumed any topic yet.", type="warning")
            return
        with ui.dialog() as dialog, ui.element("div").classes("pm-dialog"):
            heading(f"Reset offsets of {self._group}")
            topic = ui.select(self._topics, label="Topic", value=self._topics[0])
            where = ui.select([FIRST, LAST, AT], label="Continue from", value=FIRST)
            when = ui.input("Time, such as 2026-01-31 12:00").props("outlined dense")
            for each in (topic, where):
                each.props("outlined dense")
            when.bind_visibility_from(where, "value", value=AT)
            parts.note("Times are in the time zone of the dashboard's machine.")
            with ui.element("div").classes("pm-buttons"):
                parts.button("Continue", lambda: dialog.submit(True), primary=True)
                parts.button("Cancel", lambda: dialog.submit(False))
        wanted = await dialog
        chosen, place, text = str(topic.value), str(where.value), str(when.value or "")
        if not dialog.is_deleted:
            dialog.delete()
        time_ms = _time(place, text)
        if wanted and time_ms is None:
            ui.notify(f"{text!r} is not a valid time.", type="negative")
        elif wanted and time_ms is not None:
            await self._do(chosen, time_ms)

    async def _do(self, topic: str, time_ms: int) -> None:
        goal = {0: "at the first message", LATEST: "after the last message"}.get(
            time_ms, f"at {moment(time_ms)}"
        )
        consequences = [
            f"{self._group} continues {goal} in every queue of {topic}.",
            "Going back redelivers messages; going forward skips messages.",
            "Online members switch immediately. Other groups are not affected.",
        ]
        if await parts.confirm(f"Reset {self._group} in {topic}?", consequences, "Reset"):
            work = self._desk.actions.reset_offset(self._who, self._group, topic, time_ms)
            await parts.perform(work, _told)


def _told(result: ResetResult) -> str:
    told = "online members notified" if result.online else "takes effect when members start"
    silent = "".join(f"; no response from {each}" for each in result.missing)
    return f"{len(result.queues)} queues reset; {told}{silent}."


def _time(place: str, text: str) -> int | None:
    """Return the time to reset to, None if the text is not a time."""
    if place != AT:
        return LATEST if place == LAST else 0
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
