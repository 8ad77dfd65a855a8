"""`pocketmq pipeline copy`: messages from topic to topic."""

import logging
import signal
import threading
from pathlib import Path
from types import FrameType

import click

from pocketmq.cli.pipeline.showing import ProgressLine, print_json
from pocketmq.pipelines.copy import CopyProgress, CopySettings, copy_topics


@click.command("copy", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-n", "--namesrv", metavar="HOST:PORT", default="", help="Name server to copy from.")
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC", help="Topic; repeatable.")
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
@click.option("--once", is_flag=True, help="Copy what is there now, then end.")
@click.option("--keep-order", is_flag=True, help="Each queue to one queue, in order.")
@click.option("--exactly-once", is_flag=True, help="Each message once, whatever breaks; slower.")
@click.option(
    "--from",
    "starting",
    type=click.Choice(["earliest", "latest"]),
    default="earliest",
    show_default=True,
    help="Where a first run begins.",
)
@click.option("-g", "--group", help="Consumer group that shows how far it has come.")
@click.option(
    "--every",
    type=click.FloatRange(0.1, 86_400),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between batches.",
)
@click.option("--largest-batch", type=click.IntRange(1), metavar="N", help="Messages a batch.")
@click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def command(
    *,
    namesrv: str,
    topics: tuple[str, ...],
    to_namesrv: str | None,
    to_topic: str | None,
    checkpoint: Path,
    once: bool,
    keep_order: bool,
    exactly_once: bool,
    starting: str,
    group: str | None,
    every: float,
    largest_batch: int | None,
    master: str,
    as_json: bool,
) -> None:
    """Copy messages from topic to topic, on one cluster or from one to another.

    Without --once it runs until Ctrl-C; a run that follows goes on where it ended.
    """
    if not topics:
        raise click.UsageError("name at least one topic with -t")
    settings = CopySettings(
        to_topic=to_topic,
        once=once,
        keep_order=keep_order,
        exactly_once=exactly_once,
        starting=starting,
        group=group,
        every=every,
        largest_batch=largest_batch,
    )
    target = namesrv if to_namesrv is None else to_namesrv
    stop = threading.Event()
    with ProgressLine() as line:
        line.say("starting Spark …")
        from pocketmq.spark import spark_session

        spark = spark_session("pocketmq copy", master=master)
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        _stop_on_signals(stop)

        def show(now: CopyProgress) -> None:
            rate = now.messages / now.seconds if now.seconds else 0
            line.say(f"{now.messages:,} messages in {now.batches} batches, {rate:,.0f}/s")

        try:
            result = copy_topics(
                spark,
                namesrv,
                topics,
                to_name_server=target,
                checkpoint=checkpoint,
                settings=settings,
                progress=show,
                stop=stop,
            )
        finally:
            spark.stop()
    if as_json:
        print_json(result)
        return
    where = to_topic or "topics of the same names"
    print(
        f"{result.messages:,} messages in {result.batches} batches "
        f"to {where} in {result.seconds:.1f} s"
    )


def _stop_on_signals(stop: threading.Event) -> None:
    """End cleanly at the first Ctrl-C or SIGTERM, at once at the second."""

    def ask(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
