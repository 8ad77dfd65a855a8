"""`pocketmq demo`: load balancing made visible, on a cluster of its own.

Owns the command. The play is in `play`, its cast in `cast` and `member`, what is seen of it in
`view`, what Spark makes of it in `spark_part`, the proof at its end too.
"""

import tempfile
import time
from pathlib import Path

import click

from pocketmq.cli.options import FiniteRange

SCENES = (
    (
        "Two brokers with eight queues each, three consumers. Who owns what?",
        ("--topic", "orders:broker-a*8,broker-b*8", "--members", "3", "--strategy", "AVG"),
    ),
    (
        "A fourth consumer joins. How many queues move, and how few would have had to?",
        ("--topic", "orders:broker-a*8,broker-b*8", "--members", "3", "--join", "c4",
         "--strategy", "AVG,CONSISTENT_HASH"),
    ),
    (
        "One broker dies under four consumers.",
        ("--topic", "orders:broker-a*8,broker-b*8", "--members", "4",
         "--broker-down", "broker-b", "--strategy", "AVG"),
    ),
)  # fmt: skip


def show_scenes() -> None:
    """Show what an allocation is, and what changes when members and brokers come and go."""
    from pocketmq.cli.allocate import command as allocate

    for number, (title, arguments) in enumerate(SCENES, 1):
        click.secho(f"[{number}/{len(SCENES)}] {title}", bold=True)
        click.secho("$ pocketmq allocate " + " ".join(arguments), dim=True)
        allocate.main(list(arguments), prog_name="pocketmq allocate", standalone_mode=False)
        click.echo()
    click.echo(
        "Every share above is the one Java's client computes: members of both share a group."
    )


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
