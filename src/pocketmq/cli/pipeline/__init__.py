"""`pocketmq pipeline`: jobs over whole topics and estates.

Owns the table of pipelines and what they have in common; each is in a module of its own, imported
only when it is called.
"""

from importlib import import_module

import click

from pocketmq.cli.lazy_group import CommandGroup
from pocketmq.errors import CannotStart

# name -> (module, one line for `pocketmq pipeline --help`)
PIPELINES = {
    "copy": ("pocketmq.cli.pipeline.copy", "Messages from topic to topic, cluster to cluster."),
    "fleet": ("pocketmq.cli.pipeline.fleet", "What if, for a whole estate of groups."),
    "health": ("pocketmq.cli.pipeline.health", "How rebalances went: owners, pauses, moves, lag."),
    "ingest": ("pocketmq.cli.pipeline.ingest", "Topics to Parquet, each message exactly once."),
}


class Pipelines(CommandGroup):
    """A group that knows its commands by name and imports them on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the pipelines."""
        return sorted(PIPELINES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one pipeline."""
        if cmd_name not in PIPELINES:
            return None
        try:
            command = import_module(PIPELINES[cmd_name][0]).command
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("numpy", "pyarrow", "pyspark"):
                raise
            reason = f"{missing.name} is not installed; pip install 'pocketmq[spark]'"
            raise CannotStart(f"pipeline {cmd_name}", reason) from missing
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the pipelines without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, PIPELINES[name][1]) for name in sorted(PIPELINES)])


@click.command(
    "pipeline",
    cls=Pipelines,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Run a pipeline: on this machine, or on a Spark cluster with --master."""
