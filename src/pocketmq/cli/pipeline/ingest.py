"""`pocketmq pipeline ingest`: write topics to Parquet."""

from typing import TYPE_CHECKING

import click

from pocketmq.cli.commands import HELP, namesrv_option
from pocketmq.cli.output import counted, print_json
from pocketmq.cli.pipeline import streams
from pocketmq.cli.progress import ProgressBar

if TYPE_CHECKING:
    from pocketmq.pipelines.ingest import IngestProgress, IngestResult


@click.command("ingest", context_settings=HELP)
@namesrv_option()
@click.option(
    "--to",
    "place",
    required=True,
    metavar="DIR",
    help="Directory to write to, or an address that Spark knows (s3a://…); a later run resumes.",
)
@click.option(
    "--schema",
    metavar="DDL|FILE|infer",
    help="Columns of JSON bodies, such as 'id BIGINT, paid BOOLEAN'.  [default: raw bytes]",
)
@click.option(
    "--day-from",
    metavar="store|born|COLUMN",
    default="store",
    show_default=True,
    help="Timestamp that selects the day directory of a message.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["parquet", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
    help="Format of the files; delta and iceberg are not available yet.",
)
@click.option("--compact", "compacting", is_flag=True, help="Merge small files afterwards.")
@streams.stream_options(every=5.0)
def command(
    *,
    run: streams.StreamRun,
    namesrv: str,
    place: str,
    schema: str | None,
    day_from: str,
    kind: str,
    compacting: bool,
) -> None:
    """Write topics to Parquet, each message exactly once, by day and topic.

    Unreadable messages go to DIR/bad with the reason. Without --once it runs until Ctrl-C; a later
    run resumes where it stopped. --compact without topics only merges files.
    """
    from pocketmq.pipelines.ingest import IngestSettings, compact, ingest
    from pocketmq.pipelines.ingest.running import check_ingest

    if not run.topics:
        _compact_alone(place, wanted=compacting)
        return
    cluster = streams.ReachedCluster.by(namesrv, run.entry)
    settings = IngestSettings(
        once=run.once,
        schema=schema,
        day_from=day_from,
        starting=run.starting,
        group=run.group,
        every=run.every,
        largest_batch=run.largest_batch,
        options=cluster.options,
        format=kind,
    )
    check_ingest(run.topics, settings)
    streams.check_topics(cluster.client, run.topics)
    with streams.running("ingest", run) as (spark, line, stop):

        def show(now: "IngestProgress") -> None:
            pace = streams.pace(now.rows, now.seconds, now.behind)
            batches = counted(now.batches, "batch", "batches")
            line.say(f"{now.rows:,} rows in {batches}, {now.bad:,} bad, {pace}")

        where = cluster.name_server
        result = ingest(spark, where, run.topics, place, settings, progress=show, stop=stop)
    merged = None
    if compacting:
        with ProgressBar("", after=0) as line:
            merged = compact(place, progress=line.say)
    if run.as_json:
        print_json({"ingested": result, "compacted": merged})
        return
    print(_summary(result, place))
    if merged is not None:
        print(f"merged {merged.files_before} files into {merged.files_after}")


def _compact_alone(place: str, *, wanted: bool) -> None:
    if not wanted:
        raise click.UsageError("no topic; give at least one with -t")
    from pocketmq.pipelines.ingest import compact

    with ProgressBar("", after=0) as line:
        done = compact(place, progress=line.say)
    print(f"merged {done.files_before} files into {done.files_after}, {done.rows:,} rows")


def _summary(result: "IngestResult", place: str) -> str:
    late = f", {result.late:,} of them late" if result.late else ""
    bad = f"; {result.bad:,} unreadable messages are in {place}/bad" if result.bad else ""
    batches = counted(result.batches, "batch", "batches")
    return f"{result.rows:,} rows{late} in {batches} to {place}/data in {result.seconds:.1f} s{bad}"
