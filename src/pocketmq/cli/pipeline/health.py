"""`pocketmq pipeline health`: report rebalances as a table, as JSON or as a page."""

from pathlib import Path
from typing import Any

import click

from pocketmq.cli.commands import HELP, FiniteRange, json_option, namesrv_option
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.cli.output import TableColumn, numbers, print_json, print_table, write_whole
from pocketmq.cli.pipeline.starting import InterruptHandler, debug_option, started_spark
from pocketmq.cli.pipeline.streams import ReachedCluster, check_topics
from pocketmq.cli.progress import ProgressBar
from pocketmq.pipelines import health
from pocketmq.pipelines.health.observed import BadLine

_FILE = click.Path(path_type=Path)
MOST_ROWS = 40


@click.command("health", context_settings=HELP)
@click.option(
    "--events", type=_FILE, help="Rebalance events: a file of JSON lines, or a directory of them."
)
@click.option("--offsets", type=_FILE, help="Offset samples as JSON lines, for the lag.")
@click.option(
    "--deliveries", type=_FILE, help="Deliveries to handlers as JSON lines, for duplicates."
)
@namesrv_option(what="Name servers for topics and --watch")
@click.option(
    "--events-topic", metavar="TOPIC", help="Topic that members publish their history to."
)
@click.option("--offsets-topic", metavar="TOPIC", help="Topic with offset samples.")
@click.option("--deliveries-topic", metavar="TOPIC", help="Topic with deliveries.")
@click.option(
    "--watch",
    type=FiniteRange(0, 86_400),
    metavar="SECONDS",
    help="First sample the groups' offsets at the brokers for SECONDS.",
)
@click.option(
    "-g", "--group", "groups", multiple=True, help="Group to report on; repeatable.  [default: all]"
)
@click.option(
    "--quiet",
    type=FiniteRange(0.01, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="A rebalance ends after SECONDS without a change.",
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write an HTML page with charts.")
@json_option()
@debug_option
@click.option(
    "--master",
    metavar="URL",
    default="local[*]",
    show_default=True,
    help="Spark master, for topics.",
)
@entry_options
def command(
    *,
    events: Path | None,
    offsets: Path | None,
    deliveries: Path | None,
    namesrv: str,
    events_topic: str | None,
    offsets_topic: str | None,
    deliveries_topic: str | None,
    watch: float | None,
    groups: tuple[str, ...],
    quiet: float,
    html: Path | None,
    as_json: bool,
    master: str,
    **given: Any,
) -> None:
    """Report how the rebalances of groups went.

    Owners of each queue over time, time without an owner or with two, pauses, duplicates, queues
    moved against the fewest possible, balance, lag and its spikes, flapping.
    """
    if (events is None) == (events_topic is None):
        raise click.UsageError("give either --events, or --events-topic with -n")
    bad: list[BadLine] = []
    topics = {
        kind: topic
        for kind, topic in (
            ("events", events_topic),
            ("offsets", offsets_topic),
            ("deliveries", deliveries_topic),
        )
        if topic is not None
    }
    with ProgressBar("", after=0) as line:
        observed = health.Observations(
            events=[] if events is None else health.read_events(events, bad),
            offsets=[] if offsets is None else health.read_offsets(offsets, bad),
            deliveries=None if deliveries is None else health.read_deliveries(deliveries, bad),
            bad=bad,
        )
        if topics or watch is not None:
            cluster = ReachedCluster.by(namesrv, Entry.taken_from(given))
            check_topics(cluster.client, list(topics.values()))
        if topics and watch is None:
            report = _of_topics(observed, cluster, topics, master, line, groups=groups, quiet=quiet)
        else:
            if topics:
                observed = _with_topics(observed, cluster, topics, master, line)
            if watch is not None:
                observed = _with_samples(observed, cluster, groups, watch, line)
            line.say("examining …")
            report = health.examine(observed, groups=groups, quiet=quiet)
    _show(report, html, as_json=as_json)


def _of_topics(
    observed: health.Observations,
    cluster: ReachedCluster,
    topics: dict[str, str],
    master: str,
    line: ProgressBar,
    *,
    groups: tuple[str, ...],
    quiet: float,
) -> health.HealthReport:
    """Return the report of topics, computed by Spark."""
    from pocketmq.pipelines.health.by_group import examine_topics

    line.say("starting Spark …")
    with started_spark("health", master, InterruptHandler()) as spark:
        line.say(f"examining {', '.join(topics.values())} …")
        return examine_topics(
            spark,
            observed,
            name_server=cluster.name_server,
            topics=topics,
            options=cluster.options,
            groups=groups,
            quiet=quiet,
        )


def _with_topics(
    observed: health.Observations,
    cluster: ReachedCluster,
    topics: dict[str, str],
    master: str,
    line: ProgressBar,
) -> health.Observations:
    from pocketmq.pipelines.health.observed import read_topics

    line.say("starting Spark …")
    with started_spark("health", master, InterruptHandler()) as spark:
        line.say(f"reading {', '.join(topics.values())} …")
        return read_topics(
            spark,
            observed,
            name_server=cluster.name_server,
            topics=topics,
            options=cluster.options,
        )


def _with_samples(
    observed: health.Observations,
    cluster: ReachedCluster,
    groups: tuple[str, ...],
    seconds: float,
    line: ProgressBar,
) -> health.Observations:
    from pocketmq.pipelines.health.observed import watch_offsets

    wanted = {
        (event.group, event.topic)
        for event in observed.events
        if event.group in groups or not groups
    }
    samples: list[health.OffsetSample] = []
    for some in watch_offsets(cluster.client, wanted, seconds):
        samples += some
        line.say(f"watching offsets, {len(samples)} samples so far")
    return health.Observations(
        observed.events, [*observed.offsets, *samples], observed.deliveries, observed.bad
    )


def _show(report: health.HealthReport, html: Path | None, *, as_json: bool) -> None:
    """Write the page, if one is wanted, and print the report."""
    if html is not None:
        from pocketmq.pipelines.health.page import page

        write_whole(html, page(report).encode("utf-8", "backslashreplace"))
    if as_json:
        print_json(report)
        return
    print_report(report)
    if html is not None:
        print(f"\npage     {html}")


def print_report(report: health.HealthReport) -> None:
    """Print each group's numbers and rebalances."""
    for group in report.groups:
        _print_group(group)
    if report.bad:
        rows = [(line.where, line.reason) for line in report.bad[:MOST_ROWS]]
        print_table("\nunreadable", [TableColumn("where"), TableColumn("reason")], rows)


def _print_group(group: health.GroupHealth) -> None:
    print_table(
        f"group {group.group}, {', '.join(group.strategies)}", [TableColumn(""), TableColumn("")],
        _facts(group),
    )  # fmt: skip
    print()
    rows = [
        (
            f"{one.since - group.began:.1f} s", one.cause, f"{one.until - one.since:.2f} s",
            one.moved, one.minimum, one.after.group, one.after.unowned,
        )
        for one in group.rebalances[:MOST_ROWS]
    ]  # fmt: skip
    counts = numbers("took", "moved", "minimum", "spread", "unowned")
    columns = [*numbers("at"), TableColumn("rebalance"), *counts]
    print_table("", columns, rows)
    if len(group.rebalances) > MOST_ROWS:
        print(f"and {len(group.rebalances) - MOST_ROWS} more; --json shows all")


def _facts(group: health.GroupHealth) -> list[tuple[str, str]]:
    worst = max(group.queues, key=lambda queue: queue.unowned_seconds, default=None)
    unowned = f"{group.unowned_seconds:.2f} s"
    if worst is not None and worst.unowned_seconds:
        unowned += f", most of it {worst.queue} with {worst.unowned_seconds:.2f} s"
    spreads = [one.after for one in group.rebalances[-1:]]
    facts = [
        ("observed", f"{group.ended - group.began:.1f} s"),
        ("queues, members", f"{len(group.queues)}, {len(group.members)}"),
        ("time without owner", unowned),
        ("time with two owners", f"{group.shared_seconds:.2f} s"),
        ("longest pause of a moved queue", f"{group.longest_pause:.2f} s"),
        ("owner changes", str(len(group.handovers))),
        *_handovers(group),
        ("moved, minimum", f"{group.moved}, {group.minimum}"),
        ("flapping", str(len(group.flapping))),
    ]
    for after in spreads:
        topics = ", ".join(f"{topic} {spread}" for topic, spread in after.topics.items())
        facts.append(("spread at the end", f"{after.group} ({topics})"))
    if group.duplicates is not None:
        facts.append(("seen twice", f"{group.duplicates:,} of {group.deliveries:,}"))
    if group.lag is not None:
        lag = group.lag
        text = f"{lag.last:,} at the end, {lag.largest:,} at most, median {lag.median:,.0f}"
        facts.append(("lag", f"{text}, {len(lag.spikes)} spikes"))
    return facts


def _handovers(group: health.GroupHealth) -> list[tuple[str, str]]:
    """Return how queues changed hands; what only members of mode sticky tell, if they did."""
    figures, facts = group.figures, []
    if figures.without_owner is not None:
        pause = figures.without_owner
        text = f"p50 {1000 * pause.p50:.0f} ms, p99 {1000 * pause.p99:.0f} ms"
        facts.append(("without owner, a moved queue", text))
    if figures.doubtful:
        text = f"{figures.doubtful:.2f} s of it between machines, whose clocks may differ"
        facts.append(("two owners, uncertain", text))
    if set(group.modes) - {"java"}:
        facts.append(("mode", ", ".join(group.modes)))
    if figures.kinds:
        kinds = [f"{count} {kind}" for kind, count in figures.kinds.items()]
        facts.append(("hand-overs", ", ".join(kinds)))
    if figures.draining is not None:
        drained = figures.draining
        text = f"p50 {1000 * drained.p50:.0f} ms, p99 {1000 * drained.p99:.0f} ms"
        facts.append(("drain time of previous owners", text))
    return facts
