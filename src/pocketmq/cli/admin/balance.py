"""Commands for the assignment of a group: `explain`, `what-if`, `rebalance`."""

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.balance import settings_of, situation_of
from pocketmq.admin.explaining import Explanation, QueueStory
from pocketmq.admin.explaining import explain as explain_facts
from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.sticky_story import StickyStory
from pocketmq.balance.allocation import StrategySettings, is_group_strategy
from pocketmq.balance.strategies import STICKY, strategy_by_name
from pocketmq.balance.what_if import Event, Situation, StrategyChanged
from pocketmq.balance.what_if import what_if as try_events
from pocketmq.cli.admin.flags import GROUP
from pocketmq.cli.admin.frame import FAILED, admin_command
from pocketmq.cli.admin.shown import Shown, table_lines, told
from pocketmq.cli.allocate import EventsInOrder, event_option
from pocketmq.cli.allocate.described import split_names
from pocketmq.cli.allocate.reading import read_event
from pocketmq.cli.allocate.tables import answer_lines
from pocketmq.cli.output import TableColumn
from pocketmq.errors import Absent
from pocketmq.model.group_balance import BalanceMode

_QUEUES = (
    TableColumn("#Topic", least=40),
    TableColumn("#Broker Name", least=24),
    TableColumn("#QID", right=True, least=4),
    TableColumn("#Owner", least=36),
    TableColumn("#Lag", right=True, least=10),
    TableColumn("#Why"),
)


@admin_command("explain", GROUP)
async def explain(admin: Admin, *, group: str) -> Shown:
    """Explain a group's assignment and its problems.

    Finds unowned and fenced queues, brokers that list different members, colliding client ids,
    different subscriptions, silent and idle members, stuck handlers: each with evidence and remedy.
    For STICKY groups it also shows the mode, members that do not hand queues over, and how many
    queues have to move. Exits with 1 if it finds a problem.
    """
    story = await admin.balance.explain(group)
    return Shown(_story(story), story, code=FAILED if story.findings else 0)


def _story(story: Explanation) -> list[str]:
    model = "?" if story.model is None else story.model.value
    everyone_pops = bool(story.members) and set(story.popping) == set(story.members)
    strategy = "POP" if everyone_pops else story.strategy or "unknown"
    lines = [f"group {story.group}: {len(story.members)} members, {model}, strategy {strategy}"]
    if story.sticky is not None:
        lines += sticky_lines(story.sticky)
    foreign = () if story.sticky is None else story.sticky.foreign
    for member in story.members:
        marks = [mark for mark, some in (("silent", story.silent), ("foreign", foreign))
                 if member in some]  # fmt: skip
        if member in story.popping:
            marks.append(f"gRPC, {story.clients[member]}")
        lines.append(f"  {member} ({', '.join(marks)})" if marks else f"  {member}")
    if story.queues:
        others = "any member" if story.popping else "?" if story.silent else "no member"
        rows = [_queue(each, others) for each in story.queues]
        lines += ["", *table_lines(_QUEUES, rows)]
    if not story.findings:
        return [*lines, "", "no problems found"]
    for number, finding in enumerate(story.findings, 1):
        lines += ["", f"{number}. {finding.kind}: {finding.subject}"]
        lines += [f"   evidence: {finding.evidence}", f"   fix: {finding.cure}"]
    return lines


def sticky_lines(story: StickyStory) -> list[str]:
    """Return the mode of a group with hand-over, and how far its members are."""
    share = f"the share that {story.foreign_strategy or 'their strategy'} gives them"
    number = len(story.foreign)
    foreign = f"{number} foreign {'member' if number == 1 else 'members'}"
    lines = [
        {
            BalanceMode.STICKY: "mode sticky: every member hands queues over",
            BalanceMode.MIXED: f"mode mixed: {foreign} with {share}; the others divide the rest",
            BalanceMode.JAVA: "mode java: no member hands queues over",
        }[story.mode]
    ]
    if story.mode is BalanceMode.JAVA:
        return lines
    if story.moves is None:
        lines.append("balanced: unknown, since not every member and broker has responded")
    elif story.balanced:
        lines.append("balanced: yes, no queue has to move")
    else:
        lines.append(f"balanced: no, {story.moves} to move, {story.unowned} without owner")
    if story.stages:
        stages = ", ".join(f"{count} {stage}" for stage, count in story.stages.items())
        lines.append(f"in transition: {stages}")
    return lines


def _queue(story: QueueStory, others: str) -> tuple[object, ...]:
    queue = story.queue
    holder = " and ".join(story.holders) or others
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
    click.option(
        "--foreign",
        metavar="ID,...",
        default="",
        help="STICKY: more members that use a Java strategy, such as one that joins.",
    ),
    click.option(
        "--mixed",
        metavar="NAME",
        help="STICKY: the strategy of foreign members.  [default: inferred, or AVG]",
    ),
    cls=EventsInOrder,
)
async def what_if(
    admin: Admin, *, group: str, strategy: str | None, foreign: str, mixed: str | None
) -> Shown:
    """Simulate events on a live group.

    Shows which member would consume which queues, and which queues would move. Events happen in the
    given order. Nothing is changed.
    """
    given: list[tuple[str, str]] = click.get_current_context().meta["events"]
    changes = [text for kind, text in given if kind == "switch_to"]
    for each in (mixed, strategy, *changes):
        if each is not None:
            strategy_by_name(each)  # a mistake is told before any server is asked
    facts = await admin.balance.facts(group)
    name = strategy or explain_facts(facts).strategy or "AVG"
    if (foreign or mixed) and STICKY not in {each.upper() for each in (name, *changes)}:
        raise click.UsageError("--foreign and --mixed apply to STICKY only")
    known = settings_of(facts) if mixed is None else StrategySettings(mixed=mixed)
    more = split_names("--foreign", foreign) if foreign else []
    situation = situation_of(facts, strategy_by_name(name, known), more)
    events: list[Event] = []
    for kind, text in given:
        event = read_event(kind, text, tuple(situation.topics))
        if isinstance(event, str):
            event = StrategyChanged(strategy_by_name(event, known))
        events.append(event)
    answer = try_events(situation, events)
    return Shown(answer_lines(answer), answer, _unsure(facts, situation))


def _unsure(facts: GroupFacts, situation: Situation) -> tuple[str, ...]:
    """Return whose queues are not known, where the strategy starts from the owners of now."""
    if not is_group_strategy(situation.strategy):
        return ()
    return tuple(
        f"no response from member {member}: counting its queues as unowned"
        for member in sorted(facts.silent)
    )
