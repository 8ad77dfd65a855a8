"""`pocketmq pipeline fleet`: all groups of a fleet, under each strategy and event."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pocketmq.balance.allocation import Strategy, StrategySettings
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.cli import output
from pocketmq.cli.allocate import EventsInOrder, event_option
from pocketmq.cli.allocate.described import split_names
from pocketmq.cli.commands import HELP, json_option
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.cli.pipeline.starting import InterruptHandler, debug_option, started_spark
from pocketmq.cli.pipeline.streams import ReachedCluster
from pocketmq.cli.progress import ProgressBar

if TYPE_CHECKING:
    from pocketmq.pipelines import fleet

# Not STICKY: after some events it computes every group by itself, which takes much longer.
_COMPARED_BY_DEFAULT = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
MOST_UNIFORM = 100_000_000
_UNIFORM = re.compile(r"([1-9][0-9]{0,8})[,x]([1-9][0-9]{0,8})[,x]([1-9][0-9]{0,8})\Z")
_QUEUES = re.compile(r"(?:([^:*]+):)?(?:([^:*]+)\*)?([1-9][0-9]{0,5})\Z")
_BROKER = re.compile(r"([^*]+)\*([1-9][0-9]{0,5})\Z")


@click.command(
    "fleet",
    cls=EventsInOrder,
    context_settings=HELP,
    epilog="Events happen in the given order, with a complete rebalance after each.",
)
@click.argument("estate", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--uniform",
    metavar="GROUPS,QUEUES,MEMBERS",
    help="Instead of a file: generate equal groups, each with its own topic.",
)
@click.option(
    "-n",
    "--namesrv",
    metavar="HOST:PORT",
    help="Instead of a file: the groups of a running cluster.",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME,...",
    help="Strategies to compare, such as AVG,STICKY.  [default: AVG,AVG_BY_CIRCLE,CONSISTENT_HASH]",
)
@event_option("--join", "ID", "Event: a member joins every group.")
@event_option(
    "--leave", "N|ID", "Event: a member leaves every group, by position (-1 is the last) or id."
)
@event_option("--broker-down", "BROKER", "Event: a broker goes down with its queues.")
@event_option("--add-broker", "BROKER*N", "Event: a broker joins with N queues of every topic.")
@event_option(
    "--add-queues",
    "[TOPIC:][BROKER*]N",
    "Event: N more queues, of one topic or all, on one broker or all.",
)
@event_option("--switch-to", "NAME", "Event: all members change to this strategy.")
@click.option(
    "--rooms", metavar="ROOM,...", default="", help="MACHINE_ROOM: the rooms to allocate."
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
    "--details",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the numbers of every group to DIR, as Parquet.",
)
@click.option("--master", metavar="URL", help="Compute with Spark: a cluster's URL, or local[*].")
@json_option()
@debug_option
@entry_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    estate: Path | None,
    uniform: str | None,
    namesrv: str | None,
    strategies: tuple[str, ...],
    rooms: str,
    virtual_nodes: int,
    details: Path | None,
    master: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare strategies over a whole fleet: balance, and queues moved by each event.

    FILE is a JSON file {"topics": {TOPIC: {BROKER: QUEUES}}, "groups": {GROUP: {"topics":
    [TOPIC], "members": [ID] or N}}}, or a directory with the tables topics (topic, broker, queues),
    subscriptions (group, topic) and members (group, member) as Parquet, CSV or JSON lines.
    """
    from pocketmq.pipelines import fleet

    settings = StrategySettings(
        virtual_nodes=virtual_nodes,
        rooms=frozenset(split_names("--rooms", rooms)) if rooms else frozenset(),
    )
    compared = [
        _strategy(name, settings)
        for text in strategies or _COMPARED_BY_DEFAULT
        for name in split_names("--strategy", text)
    ]
    events = [_read_event(kind, text, settings) for kind, text in ctx.meta["events"]]
    whole = _estate(estate, uniform, namesrv, Entry.taken_from(given))
    with ProgressBar("comparing", "groups", after=0) as line, ExitStack() as stack:
        spark = None
        if master is not None:
            line.say("starting Spark …")
            spark = stack.enter_context(started_spark("fleet", master, InterruptHandler()))
        report = fleet.fleet(
            whole,
            compared,
            events,
            spark=spark,
            details=details,
            progress=lambda done: line.update(done, len(whole.groups)),
        )
    if as_json:
        output.print_json(report)
    else:
        _print(report, details)


def _estate(
    path: Path | None, uniform: str | None, namesrv: str | None, entry: Entry
) -> "fleet.Estate":
    from pocketmq.pipelines import fleet

    if sum(way is not None for way in (path, uniform, namesrv)) != 1:
        raise click.UsageError("give exactly one of: a groups file or directory, --uniform, -n")
    if path is not None:
        return fleet.read_estate(path)
    if namesrv is not None:
        estate, missing = fleet.cluster_estate(options=ReachedCluster.by(namesrv, entry).client)
        for what in missing:
            click.echo(f"pocketmq: not included: {output.printable(what)}", err=True)
        return estate
    assert uniform is not None
    found = _UNIFORM.match(uniform.replace(" ", ""))
    if not found:
        raise click.UsageError(f"--uniform {uniform!r} must look like 1000,64,16")
    groups, queues, members = map(int, found.groups())
    if groups * (queues + members) > MOST_UNIFORM:
        raise click.UsageError(f"--uniform {uniform}: at most {MOST_UNIFORM:,} queues and members")
    return fleet.uniform_estate(groups, queues, members)


def _strategy(name: str, settings: StrategySettings) -> Strategy:
    strategy = strategy_by_name(name, settings)
    if strategy.name.endswith("CONFIG"):
        reason = f"{name} uses the configured queues of each member: nothing to compare"
        raise click.UsageError(reason)
    return strategy


def _read_event(kind: str, text: str, settings: StrategySettings) -> "fleet.FleetEvent":
    from pocketmq.pipelines import fleet

    option = "--" + kind.replace("_", "-")
    [name] = split_names(option, text) if "," not in text else [""]
    if not name:
        raise click.UsageError(
            f"{option} takes one value; repeat the option instead of using commas"
        )
    match kind:
        case "join":
            return fleet.Join(name)
        case "leave":
            number = re.fullmatch(r"-?[0-9]{1,9}", name)
            return fleet.Leave(int(name) if number else name)
        case "broker_down":
            return fleet.LoseBroker(name)
        case "add_broker":
            found = _BROKER.match(name)
            if not found:
                raise click.UsageError(f"{option} {text!r} must look like broker-c*8")
            return fleet.AddBroker(found[1], int(found[2]))
        case "add_queues":
            found = _QUEUES.match(name)
            if not found:
                raise click.UsageError(f"{option} {text!r} must look like 4 or orders:broker-a*4")
            return fleet.AddQueues(int(found[3]), found[1], found[2])
        case _:
            return fleet.SwitchTo(_strategy(name, settings))


def _print(report: "fleet.FleetReport", details: Path | None) -> None:
    sizes = output.numbers("queues", "unowned", "uneven groups", "mean spread", "99 %", "largest")
    columns = [
        output.TableColumn("event"),
        output.TableColumn("strategy"),
        *sizes,
        *output.numbers("moved", "minimum"),
    ]
    rows = [
        (
            step.event, step.strategy, f"{step.queues:,}", f"{step.unowned:,}", f"{step.uneven:,}",
            f"{step.mean_spread:.2f}", step.spread_99, step.largest_spread,
            f"{step.moved:,}", f"{step.minimum:,}",
        )
        for steps in zip(*(summary.steps for summary in report.strategies), strict=True)
        for step in steps
    ]  # fmt: skip
    output.print_table(f"{report.groups:,} groups, {report.members:,} members", columns, rows)
    totals = [
        (summary.strategy, f"{summary.moved:,}", f"{summary.minimum:,}")
        for summary in report.strategies
    ]
    if len(report.strategies[0].steps) > 1:
        print()
        output.print_table(
            "all events",
            [output.TableColumn("strategy"), *output.numbers("moved", "minimum")],
            totals,
        )
    where = f"; the numbers of every group are in {details}" if details is not None else ""
    print(f"\n{report.groups:,} groups computed in {report.seconds:.1f} s{where}")
