"""Commands for the assignment of a group: `explain`, `what-if`, `rebalance`."""

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.explaining import Explanation, QueueStory
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.balance.what_if import Event, StrategyChanged
from pocketmq.balance.what_if import what_if as try_events
from pocketmq.cli.admin.flags import GROUP
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, table_lines, told
from pocketmq.cli.allocate import EventsInOrder, event_option
from pocketmq.cli.allocate.reading import read_event
from pocketmq.cli.allocate.tables import answer_lines
from pocketmq.cli.output import TableColumn
from pocketmq.errors import Absent

_QUEUES = (
    TableColumn("#Topic", least=40),
    TableColumn("#Broker Name", least=24),
    TableColumn("#QID", right=True, least=4),
    TableColumn("#Held by", least=36),
    TableColumn("#Lag", right=True, least=10),
    TableColumn("#Why"),
)


@admin_command("explain", GROUP)
async def explain(admin: Admin, *, group: str) -> Shown:
    """Explain a group's assignment and its problems.

    Finds unowned queues, brokers that list different members, colliding client ids, different
    subscriptions, silent and idle members, stuck handlers: each with evidence and cure.
    """
    story = await admin.balance.explain(group)
    return Shown(_story(story), story)


def _story(story: Explanation) -> list[str]:
    model = "?" if story.model is None else story.model.value
    strategy = story.strategy or "none that fits"
    lines = [f"group {story.group}: {len(story.members)} members, {model}, strategy {strategy}"]
    lines += [f"  {m}{' (silent)' if m in story.silent else ''}" for m in story.members]
    if story.queues:
        rows = [_queue(each, unsure=bool(story.silent)) for each in story.queues]
        lines += ["", *table_lines(_QUEUES, rows)]
    if not story.findings:
        return [*lines, "", "no problems found"]
    for number, finding in enumerate(story.findings, 1):
        lines += ["", f"{number}. {finding.kind}: {finding.subject}"]
        lines += [f"   seen: {finding.evidence}", f"   cure: {finding.cure}"]
    return lines


def _queue(story: QueueStory, *, unsure: bool) -> tuple[object, ...]:
    queue = story.queue
    holder = " and ".join(story.holders) or ("?" if unsure else "no member")
    lag = "?" if story.lag is None else story.lag
    return (queue.topic, queue.broker_name, queue.queue_id, holder, lag, story.why)


@admin_command("rebalance", GROUP)
async def rebalance(admin: Admin, *, group: str) -> Shown:
    """Ask a group's members to rebalance now.

    Nothing else is changed.
    """
    views = (await admin.groups.connections(group)).some()
    if not any(view.connection_set for view in views.values()):
        raise Absent("online member of group", group)
    done = (await admin.balance.rebalance(group)).some()
    asked = [each.place for each in done]
    lines = [f"asked the members of {group} through {place.address}" for place in asked]
    return Shown(lines, {"group": group, "brokers": asked}, told(done.missing))


@admin_command(
    "what-if",
    GROUP,
    click.option("--strategy", help="Strategy in use.  [default: inferred from the assignment]"),
    event_option("--join", "ID", "A member joins."),
    event_option("--leave", "ID", "A member leaves."),
    event_option("--broker-down", "BROKER", "A broker goes down with its queues."),
    event_option("--add-broker", "BROKER*N", "A broker joins with N queues of every topic."),
    event_option("--add-queues", "TOPIC:BROKER*N", "A topic gets N more queues on a broker."),
    event_option("--switch-to", "NAME", "All members change to this strategy."),
    cls=EventsInOrder,
)
async def what_if(admin: Admin, *, group: str, strategy: str | None) -> Shown:
    """Simulate events on a live group.

    Shows which member would consume which queues, and which queues would move. Events happen in the
    given order. Nothing is changed.
    """
    if strategy is None:
        strategy = (await admin.balance.explain(group)).strategy or "AVG"
    situation = await admin.balance.situation(group, strategy_by_name(strategy))
    given: list[tuple[str, str]] = click.get_current_context().meta["events"]
    events: list[Event] = []
    for kind, text in given:
        event = read_event(kind, text, tuple(situation.topics))
        events.append(StrategyChanged(strategy_by_name(event)) if isinstance(event, str) else event)
    answer = try_events(situation, events)
    return Shown(answer_lines(answer), answer)
