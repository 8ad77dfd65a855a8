"""`pocketmq pipeline copy`: messages from topic to topic."""

from pathlib import Path
from typing import Any

import click

from pocketmq.cli.entry import TO, Entry, target_entry_options
from pocketmq.cli.pipeline.reaching import Reached
from pocketmq.cli.pipeline.showing import print_json
from pocketmq.cli.pipeline.streams import StreamRun, check_topics, running, stream_options
from pocketmq.pipelines.copy import (
    CopyProgress,
    CopyResult,
    CopySettings,
    check_apart,
    check_copy,
    copy_topics,
)


@click.command("copy", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-n",
    "--namesrv",
    metavar="HOST:PORT",
    default="",
    help="Name server to copy from; or NAMESRV_ADDR.",
)
@click.option(
    "--to", "to_namesrv", metavar="HOST:PORT", help="Name server to copy to; usually the same."
)
@click.option("--to-topic", metavar="TOPIC", help="Topic for all; usually the same name.")
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Where it notes how far it has come; a run that finds its own goes on.",
)
@click.option("--keep-order", is_flag=True, help="Each queue to one queue, in order.")
@click.option("--exactly-once", is_flag=True, help="Each message once, whatever breaks; slower.")
@stream_options(every=1.0)
@target_entry_options
def command(
    *,
    run: StreamRun,
    namesrv: str,
    to_namesrv: str | None,
    to_topic: str | None,
    checkpoint: Path,
    keep_order: bool,
    exactly_once: bool,
    **given: Any,
) -> None:
    """Copy messages from topic to topic, on one cluster or from one to another.

    Without --once it runs until Ctrl-C; a run that follows goes on where it ended.
    """
    if not run.topics:
        raise click.UsageError("name at least one topic with -t")
    to_entry = Entry.taken_from(given, TO)
    if to_namesrv is None:
        to_namesrv, to_entry = namesrv, to_entry.or_else(run.entry)
    source, target = Reached.by(namesrv, run.entry), Reached.by(to_namesrv, to_entry)
    settings = CopySettings(
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
    check_copy(source.name_server, run.topics, target.name_server, settings)
    check_topics(source.client, run.topics)
    check_topics(target.client, ())
    check_apart(source.name_server, run.topics, target.name_server, settings)
    with running("copy", run) as (spark, line, stop):

        def show(now: CopyProgress) -> None:
            rate = now.messages / now.seconds if now.seconds else 0
            line.say(f"{now.messages:,} messages in {now.batches} batches, {rate:,.0f}/s")

        result = copy_topics(
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
        print(_told(result, to_topic or "topics of the same names"))


def _told(result: CopyResult, where: str) -> str:
    return (
        f"{result.messages:,} messages in {result.batches} batches "
        f"to {where} in {result.seconds:.1f} s"
    )
