"""`pocketmq pipeline copy`: copy messages between topics or clusters."""

from typing import TYPE_CHECKING, Any

import click

from pocketmq.cli.commands import HELP, namesrv_option
from pocketmq.cli.connection_options import TO, Entry, target_entry_options
from pocketmq.cli.output import counted, print_json
from pocketmq.cli.pipeline import streams

if TYPE_CHECKING:
    from pocketmq.pipelines import copy


@click.command("copy", context_settings=HELP)
@namesrv_option(what="Name servers to copy from")
@click.option(
    "--to", "to_namesrv", metavar="HOST:PORT", help="Name servers to copy to.  [default: the same]"
)
@click.option("--to-topic", metavar="TOPIC", help="Topic to copy to.  [default: the same name]")
@click.option(
    "--checkpoint",
    required=True,
    metavar="DIR",
    help="Directory for the progress, or an address that Spark knows; a later run resumes.",
)
@click.option("--keep-order", is_flag=True, help="Copy each queue to one queue, in order.")
@click.option(
    "--exactly-once",
    is_flag=True,
    help="Copy each message exactly once, even after failures; slower.",
)
@streams.stream_options(every=1.0)
@target_entry_options
def command(
    *,
    run: streams.StreamRun,
    namesrv: str,
    to_namesrv: str | None,
    to_topic: str | None,
    checkpoint: str,
    keep_order: bool,
    exactly_once: bool,
    **given: Any,
) -> None:
    """Copy messages between topics, in one cluster or from one to another.

    Without --once it runs until Ctrl-C; a later run resumes where it stopped.
    """
    from pocketmq.pipelines import copy

    if not run.topics:
        raise click.UsageError("no topic; give at least one with -t")
    source, target = _clusters(namesrv, run.entry, to_namesrv, Entry.taken_from(given, TO))
    settings = copy.CopySettings(
        to_topic=to_topic,
        once=run.once,
        keep_order=keep_order,
        exactly_once=exactly_once,
        starting=run.starting,
        group=run.group,
        every=run.every,
        largest_batch=run.largest_batch,
        from_options=source.options,
        to_options=target.options,
    )
    copy.check_copy(source.name_server, run.topics, target.name_server, settings)
    streams.check_topics(source.client, run.topics)
    streams.check_topics(target.client, ())
    copy.check_apart(source.name_server, run.topics, target.name_server, settings)
    with streams.running("copy", run) as (spark, line, stop):

        def show(now: copy.CopyProgress) -> None:
            pace = streams.pace(now.messages, now.seconds, now.behind)
            batches = counted(now.batches, "batch", "batches")
            line.say(f"{now.messages:,} messages in {batches}, {pace}")

        result = copy.copy_topics(
            spark,
            source.name_server,
            run.topics,
            to_name_server=target.name_server,
            checkpoint=checkpoint,
            settings=settings,
            progress=show,
            stop=stop,
        )
    if run.as_json:
        print_json(result)
    else:
        print(_summary(result, to_topic or "topics of the same names"))


def _clusters(
    namesrv: str, entry: Entry, to_namesrv: str | None, to_entry: Entry
) -> tuple[streams.ReachedCluster, streams.ReachedCluster]:
    """Return the clusters to copy from and to; within one cluster, the entry serves for both."""
    if to_namesrv is None:
        to_namesrv, to_entry = namesrv, to_entry.or_else(entry)
    return (
        streams.ReachedCluster.by(namesrv, entry),
        streams.ReachedCluster.by(to_namesrv, to_entry),
    )


def _summary(result: "copy.CopyResult", where: str) -> str:
    return (
        f"{result.messages:,} messages in {counted(result.batches, 'batch', 'batches')} "
        f"to {where} in {result.seconds:.1f} s"
    )
