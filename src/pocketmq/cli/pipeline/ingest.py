"""`pocketmq pipeline ingest`: topics to Parquet."""

import logging
import signal
import threading
from pathlib import Path
from types import FrameType

import click

from pocketmq.cli.pipeline.showing import ProgressLine, print_json
from pocketmq.pipelines.ingest import IngestProgress, IngestSettings, compact, ingest


@click.command("ingest", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-n", "--namesrv", metavar="HOST:PORT", default="", help="Name server.")
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC", help="Topic; repeatable.")
@click.option(
    "--to",
    "place",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Where to write; a run that finds its own files goes on.",
)
@click.option("--once", is_flag=True, help="Copy what is there now, then end.")
@click.option(
    "--schema",
    metavar="DDL|FILE|infer",
    help="Columns of JSON bodies, such as 'id BIGINT, paid BOOLEAN'; usually bodies stay bytes.",
)
@click.option(
    "--day-from",
    metavar="store|born|COLUMN",
    default="store",
    show_default=True,
    help="Whose day to file a message under.",
)
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
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between batches.",
)
@click.option("--largest-batch", type=click.IntRange(1), metavar="N", help="Messages a batch.")
@click.option("--compact", "compacting", is_flag=True, help="Merge small files at the end.")
@click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def command(
    *,
    namesrv: str,
    topics: tuple[str, ...],
    place: Path,
    once: bool,
    schema: str | None,
    day_from: str,
    starting: str,
    group: str | None,
    every: float,
    largest_batch: int | None,
    compacting: bool,
    master: str,
    as_json: bool,
) -> None:
    """Copy topics to Parquet, each message exactly once, by day and topic.

    What cannot be read is kept in DIR/bad with the reason. Without --once it runs until Ctrl-C; a
    run that follows goes on where it ended. --compact alone, without topics, merges files.
    """
    if not topics:
        if not compacting:
            raise click.UsageError("name at least one topic with -t")
        with ProgressLine() as line:
            done = compact(place, progress=line.say)
        print(f"{done.files_before} files became {done.files_after}, {done.rows:,} rows")
        return
    settings = IngestSettings(
        once=once,
        schema=schema,
        day_from=day_from,
        starting=starting,
        group=group,
        every=every,
        largest_batch=largest_batch,
    )
    stop = threading.Event()
    with ProgressLine() as line:
        line.say("starting Spark …")
        from pocketmq.spark import spark_session

        spark = spark_session("pocketmq ingest", master=master)
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        _stop_on_signals(stop)

        def show(now: IngestProgress) -> None:
            rate = now.rows / now.seconds if now.seconds else 0
            line.say(f"{now.rows:,} rows in {now.batches} batches, {now.bad:,} bad, {rate:,.0f}/s")

        try:
            result = ingest(spark, namesrv, topics, place, settings, progress=show, stop=stop)
        finally:
            spark.stop()
        merged = compact(place, progress=line.say) if compacting else None
    if as_json:
        print_json({"ingested": result, "compacted": merged})
        return
    late = f", {result.late:,} of them late" if result.late else ""
    bad = f"; {result.bad:,} could not be read and are in {place / 'bad'}" if result.bad else ""
    print(
        f"{result.rows:,} rows{late} in {result.batches} batches to {place / 'data'} "
        f"in {result.seconds:.1f} s{bad}"
    )
    if merged is not None:
        print(f"{merged.files_before} files became {merged.files_after}")


def _stop_on_signals(stop: threading.Event) -> None:
    """End cleanly at the first Ctrl-C or SIGTERM, at once at the second."""

    def ask(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
