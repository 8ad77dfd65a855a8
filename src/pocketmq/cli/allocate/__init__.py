"""`pocketmq allocate`: which member would consume which queues, without a cluster.

Owns the options. Their values are read in `reading`, those that describe the group in `described`;
the tables are in `tables`, the check of vector files is in `vectors`; the answers come from
`pocketmq.balance`.
"""

from collections.abc import Callable
from typing import Any

import click
import msgspec

from pocketmq.balance.allocation import StrategySettings
from pocketmq.balance.what_if import WhatIf, what_if
from pocketmq.cli.allocate.reading import AllocateOptions, AllocationPlan, make_plan
from pocketmq.cli.commands import HELP, json_option
from pocketmq.cli.output import print_json

EVENT_OPTIONS = ("join", "leave", "broker_down", "add_broker", "add_queues", "switch_to")


class Report(msgspec.Struct, frozen=True):
    """What `--json` prints: the situation, and one answer per strategy."""

    topics: dict[str, int]
    members: tuple[str, ...]
    strategies: list[WhatIf]


class EventsInOrder(click.Command):
    """A command that keeps the order of its event options, which click does not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record the events, then parse as usual."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        waiting = {name: iter(values.get(name) or ()) for name in EVENT_OPTIONS}
        ctx.meta["events"] = [
            (option.name, next(waiting[option.name])) for option in order if option.name in waiting
        ]
        return super().parse_args(ctx, args)


def event_option(name: str, metavar: str, text: str) -> Callable[[Any], Any]:
    """Return an option for an event; `EventsInOrder` gathers them."""
    return click.option(name, multiple=True, expose_value=False, metavar=metavar, help=text)


@click.command(
    "allocate",
    cls=EventsInOrder,
    context_settings=HELP,
    epilog="Events happen in the given order, with a complete rebalance after each.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC:BROKER*N,...",
    help="A topic and its queues, such as orders:broker-a*8,broker-b*8; repeatable.",
)
@click.option(
    "--members",
    metavar="N|ID,ID,...",
    help="Ids of the members, or their number (3 stands for c1,c2,c3).",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME,...",
    help="Strategies to compare.  [default: AVG,AVG_BY_CIRCLE,CONSISTENT_HASH,STICKY]",
)
@click.option(
    "--previous",
    metavar="FILE",
    help="Current owners, as CSV or JSON; topics and members default to those in the file.",
)
@event_option("--join", "ID", "Event: a member joins.")
@event_option("--leave", "ID", "Event: a member leaves.")
@event_option("--broker-down", "BROKER", "Event: a broker goes down with its queues.")
@event_option("--add-broker", "BROKER*N", "Event: a broker joins with N queues of every topic.")
@event_option("--add-queues", "TOPIC:BROKER*N", "Event: a topic gets N more queues on a broker.")
@event_option("--switch-to", "NAME", "Event: all members change to this strategy.")
@click.option(
    "--rooms",
    metavar="ROOM,...",
    default="",
    help="MACHINE_ROOM: the rooms whose queues are allocated.",
)
@click.option(
    "--room",
    "room_items",
    multiple=True,
    metavar="ROOM=NAME,...",
    help="MACHINE_ROOM_NEARBY: brokers and members of a room.  [default: as in ROOM@NAME]",
)
@click.option(
    "--virtual-nodes",
    type=click.IntRange(0, 10_000),
    metavar="N",
    default=10,
    show_default=True,
    help="CONSISTENT_HASH: virtual nodes per member.",
)
@click.option(
    "--foreign",
    metavar="ID,...",
    default="",
    help="STICKY: members that use a Java strategy; the others divide the rest.",
)
@click.option(
    "--mixed", metavar="NAME", help="STICKY: the strategy of foreign members.  [default: AVG]"
)
@json_option()
@click.option(
    "--vectors",
    metavar="FILE",
    help="Check allocations computed by Java, a file of JSON lines.",
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    topics: tuple[str, ...],
    members: str | None,
    strategies: tuple[str, ...],
    previous: str | None,
    rooms: str,
    room_items: tuple[str, ...],
    virtual_nodes: int,
    foreign: str,
    mixed: str | None,
    as_json: bool,
    vectors: str | None,
) -> int:
    """Preview and compare allocations, without a cluster.

    Shows which member would consume which queues under each strategy and, if events or the current
    owners are given, which queues move, and the minimum number of moves.
    """
    events: list[tuple[str, str]] = ctx.meta["events"]
    if vectors is not None:
        if topics or members is not None or strategies or events:
            raise click.UsageError(
                "--vectors cannot be combined with topics, members, strategies or events"
            )
        if previous is not None or foreign or mixed is not None:
            raise click.UsageError(
                "--vectors are of Java's strategies: they have no --previous, --foreign or --mixed"
            )
        return _check_vectors(vectors, rooms, virtual_nodes, as_json)
    plan = make_plan(
        AllocateOptions(
            topics=topics,
            members=members,
            strategies=strategies,
            events=events,
            rooms=rooms,
            room_items=room_items,
            virtual_nodes=virtual_nodes,
            previous=previous,
            foreign=foreign,
            mixed=mixed,
        )
    )
    if plan.left_out:
        click.echo(f"pocketmq: not compared: {plan.left_out}", err=True)
    answers = [what_if(situation, plan.events) for situation in plan.situations]
    if as_json:
        print_json(_report(plan, answers))
    else:
        from pocketmq.cli.allocate.tables import print_answers

        print_answers(answers)
    return 0


def _report(plan: AllocationPlan, answers: list[WhatIf]) -> Report:
    situation = plan.situations[0]
    counts = {topic: len(queues) for topic, queues in situation.topics.items()}
    return Report(counts, situation.members, answers)


def _check_vectors(path: str, rooms: str, virtual_nodes: int, as_json: bool) -> int:
    from pocketmq.cli.allocate.described import split_names
    from pocketmq.cli.allocate.vectors import bounded_lines, check_lines, print_tallies

    settings = StrategySettings(
        virtual_nodes=virtual_nodes,
        rooms=frozenset(split_names("--rooms", rooms)) if rooms else frozenset(),
    )
    try:
        with click.open_file(path, "rb") as file:
            tallies = check_lines(bounded_lines(file), settings)
    except OSError as problem:
        raise click.UsageError(f"cannot read {path}: {problem.strerror}") from problem
    except click.UsageError as problem:
        raise click.UsageError(f"{path}: {problem.message}") from problem
    if as_json:
        print_json(tallies)
    else:
        print_tallies(tallies)
    return 0 if all(tally.equal == tally.total for tally in tallies) else 1
