"""`pocketmq demo --offline`: allocations made visible, without a cluster."""

import click

from pocketmq.cli.allocate import command as allocate

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
    for number, (title, arguments) in enumerate(SCENES, 1):
        click.secho(f"[{number}/{len(SCENES)}] {title}", bold=True)
        click.secho("$ pocketmq allocate " + " ".join(arguments), dim=True)
        allocate.main(list(arguments), prog_name="pocketmq allocate", standalone_mode=False)
        click.echo()
    click.echo(
        "Every share above is the one Java's client computes: members of both share a group."
    )
