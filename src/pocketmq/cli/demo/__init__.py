"""`pocketmq demo`: load balancing made visible, on a cluster of its own.

Owns the command, and the scenes of `--offline`. The play is in `play`, its two groups and
their processes in `cast` and `member`, the display in `view`, Spark's part in `spark_part`. What
was seen is judged by `repeats` and `outcome`, which are pure.
"""

import tempfile
import time
from pathlib import Path

import click

from pocketmq.cli.commands import HELP, FiniteRange

SCENES = (
    (
        "Two brokers with eight queues each, three consumers. Who owns what?",
        ("--topic", "orders:broker-a*8,broker-b*8", "--members", "3", "--strategy", "AVG"),
    ),
    (
        "A fourth consumer joins. How many queues move, and what is the minimum?",
        ("--topic", "orders:broker-a*8,broker-b*8", "--members", "3", "--join", "c4",
         "--strategy", "AVG,CONSISTENT_HASH,STICKY"),
    ),
    (
        "One of four consumers leaves.",
        ("--topic", "orders:broker-a*8,broker-b*8", "--members", "4", "--leave", "c1",
         "--strategy", "AVG,STICKY"),
    ),
    (
        "One broker dies under four consumers.",
        ("--topic", "orders:broker-a*8,broker-b*8", "--members", "4",
         "--broker-down", "broker-b", "--strategy", "AVG,STICKY"),
    ),
)  # fmt: skip


def show_scenes() -> None:
    """Show allocations, and how they change when members and brokers join and leave."""
    from pocketmq.cli.allocate import command as allocate

    for number, (title, arguments) in enumerate(SCENES, 1):
        click.secho(f"[{number}/{len(SCENES)}] {title}", bold=True)
        click.secho("$ pocketmq allocate " + " ".join(arguments), dim=True)
        allocate.main(list(arguments), prog_name="pocketmq allocate", standalone_mode=False)
        click.echo()
    click.echo(
        "Java's client computes the same allocations, so both can be members of one group. STICKY "
        "is PocketMQ's own: it moves the fewest queues, and hands them over without messages twice."
    )


@click.command("demo", context_settings=HELP)
@click.option("--offline", is_flag=True, help="Only show allocations, without a cluster.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for the report and the Parquet files.  [default: a new temporary one]",
)
@click.option("--no-spark", is_flag=True, help="Skip the Spark part.")
@click.option(
    "--pace",
    type=FiniteRange(0, 60),
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="Pause after each act, once the groups have settled.",
)
@click.option(
    "--rate",
    type=click.IntRange(1, 5000),
    default=200,
    show_default=True,
    metavar="N",
    help="Messages sent per second.",
)
def command(*, offline: bool, out: Path | None, no_spark: bool, pace: float, rate: int) -> int:
    """Watch load balancing at work.

    Two brokers with eight queues each, producers, and two groups of consumer processes, one with
    AVG and one with STICKY, that join, leave and crash; a broker is killed and restarted. Spark
    copies the messages to Parquet and makes a health report of the rebalances. At the end the
    groups are compared; every message is proved to be consumed, and none was delivered twice with
    STICKY except repeats that a crash explains.
    """
    if offline:
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
        raise click.UsageError(f"{out} is not empty; give another directory with --out")
    return run_play(out, with_spark=not no_spark, pace=pace, rate=rate)
