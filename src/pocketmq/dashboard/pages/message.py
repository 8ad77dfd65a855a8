"""One message: its content, the groups that consumed it, its trace."""

from collections.abc import Callable
from functools import partial

import msgspec
from fastapi import Request
from nicegui import ui

from pocketmq.admin.messages import Resent, TraceEvent
from pocketmq.admin.tracks import Track, TrackKind
from pocketmq.dashboard import parts
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import NEVER, body_forms, link_to, moment, size
from pocketmq.dashboard.frame import frame, heading
from pocketmq.dashboard.pages.message_browser import body_of
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue
from pocketmq.model.names import is_dead_letter_topic
from pocketmq.protocol import ReceivedMessage, trace_text

_LARGEST = 2**63


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/messages/{topic}/{broker}/{queue}/{offset}", response_timeout=20)
    async def message_page(
        request: Request, topic: str, broker: str, queue: int, offset: int
    ) -> None:
        desk = desks.of(request)
        message, problem = None, ""
        try:
            if not (0 <= queue < 2**31 and 0 <= offset < _LARGEST):
                problem = "No such queue or offset."
            else:
                place = MessageQueue(topic, broker, queue)
                message = await desk.admin.messages.by_offset(place, offset)
        except MQError as error:
            problem = str(error)
        path = (("Messages", "/messages"), (topic, link_to("topics", topic)))
        title = "Message" if message is None else message.message_id
        with frame(desk, request, title, here="/messages", path=path):
            if message is None:
                with ui.element("div").classes("pm-warning").props("role=alert"):
                    ui.label(problem).classes("pm-warning-text")
            else:
                _Message(desk, request, message)


class _Message:
    """The open page; consumers and trace are loaded after it is shown."""

    def __init__(self, desk: Desk, request: Request, message: ReceivedMessage) -> None:
        self._desk = desk
        self._message = message
        self._who = parts.visitor(request)
        with ui.element("div").classes("pm-buttons"):
            parts.action_button(desk, "Send a copy", self._resend)
            if is_dead_letter_topic(message.topic):
                parts.note("A dead letter: a copy is sent to its original topic.")
        with ui.element("div").classes("pm-columns"):
            with ui.element("div"), parts.card("Details"):
                parts.facts(_known(message))
            with ui.element("div"), parts.card("Properties"):
                parts.facts(sorted(message.properties.items()))
        _show_body(message)
        heading("Consumed by")
        self._tracks = LiveTable[Track](
            "Consumed by", _TRACK_COLUMNS, key=lambda track: track.group,
            empty="No group consumes this topic.",
        )  # fmt: skip
        heading("Trace")
        self._trace = LiveTable[TraceStep](
            "Trace", _STEP_COLUMNS, key=lambda step: f"{step.time_ms} {step.what} {step.group}",
            empty="No trace: tracing is off, or the trace has expired.",
        )  # fmt: skip
        self._problem = parts.note("")
        ui.timer(0.05, self._look, once=True)

    async def _look(self) -> None:
        problems = []
        try:
            self._tracks.show(await self._desk.admin.tracks.of(self._message))
        except MQError as error:
            problems.append(f"Consumers are unknown: {error}")
        events: list[TraceEvent] = []
        try:
            events = await self._desk.admin.messages.trace(self._message.message_id)
        except MQError as error:
            problems.append(f"No trace: {error}")
        self._trace.show(steps(events))
        self._problem.set_text(" ".join(problems))

    async def _resend(self) -> None:
        consequences = [
            "A copy with a new id is sent, with the same body, tag, keys and properties.",
            "Every group of the topic receives it, also if it consumed the original.",
            "This message is kept.",
        ]
        if await parts.confirm("Send a copy of this message?", consequences, "Send"):
            work = self._desk.actions.resend(self._who, [self._message])
            await parts.perform(work, told_resent)


def told_resent(results: list[Resent]) -> str:
    """Return the result of sending copies as text."""
    failed = [f"{each.message_id}: {each.error}" for each in results if each.error is not None]
    sent = len(results) - len(failed)
    topics = ", ".join(sorted({each.topic for each in results if each.error is None}))
    done = f"{sent} sent to {topics}." if sent else "Nothing was sent."
    return " ".join([done, *failed])


def _known(message: ReceivedMessage) -> list[tuple[str, str]]:
    queue = f"{message.broker_name}, queue {message.queue_id}, offset {message.queue_offset:,}"
    return [
        ("Topic", message.topic),
        ("Message id", message.message_id),
        ("Offset id", message.offset_message_id),
        ("Queue", queue),
        ("Tag", message.tag or NEVER),
        ("Keys", " ".join(message.keys) or NEVER),
        ("Born", f"{moment(message.born_timestamp_ms)} at {_host(lambda: message.born_host)}"),
        ("Stored", f"{moment(message.store_timestamp_ms)} at {_host(lambda: message.store_host)}"),
        ("Retries", f"{message.reconsume_times}"),
        ("Size", size(message.store_size)),
    ]


def _host(read: Callable[[], str]) -> str:
    try:
        return read()
    except MQError as error:
        return str(error)


def _show_body(message: ReceivedMessage) -> None:
    body, problem = body_of(message)
    ways = body_forms(body)
    with parts.card(f"Body, {size(len(body))}"):
        if problem is not None:
            ui.label(problem).classes("pm-bad")
            return
        tabs: dict[str, ui.element] = {}

        def choose(wanted: str) -> None:
            label.set_text(ways[wanted])
            for name, tab in tabs.items():
                tab.props["aria-pressed"] = "true" if name == wanted else "false"
                tab.update()

        with ui.element("div").classes("pm-tabs").props("role=group aria-label=View"):
            for name in ways:
                tabs[name] = parts.button(name, partial(choose, name))
        with ui.element("pre").classes("pm-pre").props("tabindex=0 aria-label=Body"):
            label = ui.label("").classes("pm-inline")
        choose(next(iter(ways)))


class TraceStep(msgspec.Struct, frozen=True):
    """One step of a trace; times are milliseconds, 0 if unknown."""

    time_ms: int
    what: str
    group: str
    client: str
    cost_ms: int | None
    ok: bool


def steps(events: list[TraceEvent]) -> list[TraceStep]:
    """Return the steps, oldest first."""
    made = [_step(each.event, each.client_host) for each in events]
    return sorted(made, key=lambda step: step.time_ms)


def _step(event: trace_text.Traced, client: str) -> TraceStep:
    match event:
        case trace_text.TracedSend():
            what = f"sent to {event.topic}"
            return TraceStep(event.time_ms, what, event.group, client, event.cost_ms, event.ok)
        case trace_text.TracedDelivery():
            again = f", attempt {event.retries + 1}" if event.retries else ""
            what = f"delivered to handler{again}"
            return TraceStep(event.time_ms, what, event.group, client, None, True)
        case trace_text.TracedHandling():
            what = f"handler returned: {event.handled_as.name.lower().replace('_', ' ')}"
            return TraceStep(event.time_ms, what, event.group, client, event.cost_ms, event.ok)
        case trace_text.TracedEnd():
            asked = ", after a broker check" if event.from_check else ""
            what = f"transaction ended: {event.state.name.lower()}{asked}"
            return TraceStep(event.time_ms, what, event.group, client, None, True)
        case trace_text.TracedRecall():
            return TraceStep(event.time_ms, "recalled", event.group, client, None, event.ok)


_GOOD = {TrackKind.CONSUMED, TrackKind.CONSUME_BROADCASTING}
_WORDS = {
    TrackKind.CONSUMED: "consumed",
    TrackKind.CONSUMED_BUT_FILTERED: "filtered out by tag",
    TrackKind.PULL: "unknown: pull consumer",
    TrackKind.NOT_CONSUME_YET: "not consumed yet",
    TrackKind.NOT_ONLINE: "offline",
    TrackKind.CONSUME_BROADCASTING: "broadcasting: tracked by each member",
    TrackKind.UNKNOWN: "unknown",
}


def _track(track: Track) -> Cell:
    tone = "good" if track.kind in _GOOD else "warn"
    return Cell(_WORDS[track.kind], tone=tone, hint=track.reason)


_TRACK_COLUMNS = [
    Column[Track](
        "Group", lambda t: Cell(t.group, href=link_to("groups", t.group)), lambda t: t.group
    ),
    Column[Track]("State", _track, lambda t: t.kind.value),
    Column[Track]("Reason", lambda t: Cell(t.reason or "", tone="faint")),
]
_STEP_COLUMNS = [
    Column[TraceStep]("When", lambda s: Cell(moment(s.time_ms)), lambda s: s.time_ms, kind="time"),
    Column[TraceStep]("What", lambda s: Cell(s.what)),
    Column[TraceStep]("Group", lambda s: Cell(s.group)),
    Column[TraceStep]("Client", lambda s: Cell(s.client, tone="mono")),
    Column[TraceStep](
        "Took", lambda s: Cell(NEVER if s.cost_ms is None else f"{s.cost_ms} ms"), kind="number"
    ),
    Column[TraceStep](
        "Outcome", lambda s: Cell("ok" if s.ok else "failed", tone="good" if s.ok else "bad")
    ),
]
