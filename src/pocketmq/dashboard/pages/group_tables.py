"""Rows and columns of a group's page: members, queues, settings."""

import msgspec

from pocketmq.admin.facts import GroupFacts
from pocketmq.dashboard.formatting import NEVER, UNKNOWN, count, link_to, moment
from pocketmq.dashboard.handover_words import state_of, state_text
from pocketmq.dashboard.pages.groups import version
from pocketmq.dashboard.table import Cell, Column
from pocketmq.dashboard.views import GroupView
from pocketmq.model import GroupConfig, MessageQueue, QueueStage, handover_version
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol.requests import client_calls, groups, stats

Setting = tuple[str, GroupConfig]


class MemberRow(msgspec.Struct, frozen=True):
    """A member as brokers list it, and what it reports itself; None if it did not respond."""

    client: str
    connection: groups.ClientConnection
    brokers: tuple[str, ...]
    info: client_calls.RunningInfo | None
    silence: str | None

    @property
    def held(self) -> int | None:
        """The number of its queues."""
        if self.info is None:
            return None
        tables = (self.info.mq_table, self.info.mq_pop_table)
        return sum(
            not is_retry_topic(queue.topic) and not each.dropped
            for table in tables
            for queue, each in table.items()
        )


class QueueRow(msgspec.Struct, frozen=True):
    """A queue: its owner, the expected owner, and the group's progress."""

    queue: MessageQueue
    holders: tuple[str, ...]
    expected: str | None
    why: str
    progress: stats.QueueProgress | None
    stages: dict[str, QueueStage] = {}

    @property
    def name(self) -> str:
        """Its unique name."""
        return f"{self.queue.topic} {self.queue.broker_name} {self.queue.queue_id}"

    @property
    def text(self) -> str:
        """The text that a search matches."""
        return f"{self.name} {' '.join(self.holders) or 'none'}"

    @property
    def lag(self) -> int | None:
        """Its lag, None if unknown."""
        told = self.progress
        return None if told is None else max(0, told.broker_offset - told.consumer_offset)


def member_rows(facts: GroupFacts) -> list[MemberRow]:
    """Return the members that any broker lists."""
    found: dict[str, tuple[groups.ClientConnection, list[str]]] = {}
    for broker, view in sorted(facts.views.items()):
        for each in view.connection_set:
            if each.client_id is not None:
                found.setdefault(each.client_id, (each, []))[1].append(broker)
    return [
        MemberRow(
            client, each, tuple(dict.fromkeys(brokers)), facts.running.get(client),
            facts.silent.get(client),
        )
        for client, (each, brokers) in sorted(found.items())
    ]  # fmt: skip


def queue_rows(view: GroupView) -> list[QueueRow]:
    """Return the queues of all subscribed topics, and those with committed offsets."""
    progress, holders = view.facts.progress, view.facts.holders()
    rows = [
        QueueRow(
            each.queue, each.holders, each.expected, each.why, progress.get(each.queue),
            each.stages,
        )
        for each in view.explanation.queues
    ]  # fmt: skip
    known = {story.queue for story in view.explanation.queues}
    rows += [
        QueueRow(queue, tuple(holders.get(queue, ())), None, "", told)
        for queue, told in progress.items()
        if queue not in known
    ]
    return rows


def _held(member: MemberRow) -> Cell:
    if member.held is None:
        return Cell(UNKNOWN, hint=member.silence, tone="bad")
    return Cell(count(member.held), tone=None if member.held else "faint")


def _since(member: MemberRow) -> int | None:
    text = (
        member.info.properties.get(client_calls.PROP_START_TIMESTAMP, "")
        if member.info is not None
        else ""
    )
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _subscribed(member: MemberRow) -> str:
    if member.info is None:
        return UNKNOWN
    wished = sorted(
        f"{each.topic} ({each.sub_string})"
        for each in member.info.subscription_set
        if not is_retry_topic(each.topic)
    )
    return ", ".join(wished) or NEVER


def _language(member: MemberRow) -> str:
    language = member.connection.language
    return UNKNOWN if language is None else language.name.lower()


def _holders(row: QueueRow) -> Cell:
    if not row.holders:
        return Cell("none", tone="warn" if row.expected is not None else "faint")
    tone = "bad" if len(row.holders) > 1 and row.expected is not None else None
    return Cell(", ".join(row.holders), tone=tone)


def _state(row: QueueRow) -> Cell:
    text = state_text(row.stages)
    return Cell(text or NEVER, tone="warn" if state_of(row.stages) is QueueStage.FENCED else None)


def _handover(member: MemberRow) -> Cell:
    version = handover_version(member.client)
    return Cell("no", tone="faint") if version is None else Cell(f"version {version}")


def _offset(row: QueueRow, name: str) -> int | None:
    value = None if row.progress is None else getattr(row.progress, name)
    return value if isinstance(value, int) else None


MEMBER_COLUMNS = [
    Column[MemberRow]("Client", lambda m: Cell(m.client, tone="mono"), lambda m: m.client),
    Column[MemberRow]("Queues", _held, lambda m: m.held, kind="number"),
    Column[MemberRow]("Subscribes", lambda m: Cell(_subscribed(m))),
    Column[MemberRow]("Address", lambda m: Cell(m.connection.client_addr or UNKNOWN, tone="mono")),
    Column[MemberRow]("Version", lambda m: Cell(f"{_language(m)} {version(m.connection.version)}")),
    Column[MemberRow]("Started", lambda m: Cell(moment(_since(m) or 0)), _since, kind="time"),
    Column[MemberRow]("Brokers", lambda m: Cell(", ".join(m.brokers))),
    Column[MemberRow]("Hand-over", _handover, lambda m: handover_version(m.client) or 0),
]
QUEUE_COLUMNS = [
    Column[QueueRow](
        "Topic",
        lambda r: Cell(r.queue.topic, href=link_to("topics", r.queue.topic)),
        lambda r: r.queue.topic,
    ),
    Column[QueueRow]("Broker", lambda r: Cell(r.queue.broker_name), lambda r: r.queue.broker_name),
    Column[QueueRow](
        "Queue", lambda r: Cell(str(r.queue.queue_id)), lambda r: r.queue.queue_id, kind="number"
    ),
    Column[QueueRow]("Owner", _holders, lambda r: r.holders),
    Column[QueueRow]("Lag", lambda r: Cell(count(r.lag)), lambda r: r.lag, kind="number"),
    Column[QueueRow](
        "Committed offset",
        lambda r: Cell(count(_offset(r, "consumer_offset"))),
        lambda r: _offset(r, "consumer_offset"),
        kind="number",
    ),
    Column[QueueRow](
        "Next offset",
        lambda r: Cell(count(_offset(r, "broker_offset"))),
        lambda r: _offset(r, "broker_offset"),
        kind="number",
    ),
    Column[QueueRow]("Why", lambda r: Cell(r.why, tone="faint")),
    Column[QueueRow]("State", _state, lambda r: state_text(r.stages)),
]
SETTING_COLUMNS = [
    Column[Setting]("Broker", lambda row: Cell(row[0])),
    Column[Setting]("Consume enabled", lambda row: Cell("yes" if row[1].consume_enable else "no")),
    Column[Setting]("Orderly", lambda row: Cell("yes" if row[1].consume_message_orderly else "no")),
    Column[Setting](
        "Broadcast enabled", lambda row: Cell("yes" if row[1].consume_broadcast_enable else "no")
    ),
    Column[Setting]("Retries", lambda row: Cell(count(row[1].retry_max_times)), kind="number"),
    Column[Setting](
        "Retry queues", lambda row: Cell(count(row[1].retry_queue_nums)), kind="number"
    ),
]
