"""`pocketmq demo`: load balancing made visible, on a cluster of its own.

Owns the command. The play is in `play`, its cast in `cast` and `member`, what is seen of it in
`view`, what Spark makes of it in `spark_part`, the proof at the end in `proof`.
"""

import tempfile
import time
from pathlib import Path

import click

from pocketmq.cli.options import FiniteRange


@click.command("demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--offline", is_flag=True, help="Only show allocations, without a cluster.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the report and the Parquet files go; usually a new directory for temporary files.",
)
@click.option("--no-spark", is_flag=True, help="Leave the Spark part out.")
@click.option(
    "--pace",
    type=FiniteRange(0, 60),
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="How long each act is shown once the group has settled.",
)
@click.option(
    "--rate",
    type=click.IntRange(1, 5000),
    default=300,
    show_default=True,
    help="Messages sent a second.",
)
def command(*, offline: bool, out: Path | None, no_spark: bool, pace: float, rate: int) -> int:
    """See load balancing at work.

    Two brokers with eight queues each, producers, and a group of consumer processes that join,
    leave and die; a broker is killed and comes back. Spark copies the messages to Parquet and makes
    a health report of the rebalances. At the end it is shown that every message was consumed.
    """
    if offline:
        from pocketmq.cli.demo import show_scenes

        show_scenes()
        return 0
    from pocketmq.cli.demo.play import run_play

    if out is None:
        name = time.strftime("pocketmq-demo-%Y%m%d-%H%M%S")
        out = Path(tempfile.gettempdir()) / name
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise click.UsageError(f"cannot write to {out}: {problem.strerror}") from problem
    if any(out.iterdir()):
        raise click.UsageError(f"{out} is not empty: name another directory with --out")
    return run_play(out, with_spark=not no_spark, pace=pace, rate=rate)
