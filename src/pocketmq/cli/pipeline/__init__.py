"""`pocketmq pipeline`: jobs over whole topics and estates. Owns the list of pipelines."""

from typing import Any

import click

from pocketmq.cli.commands import HELP, LazyGroup, Listed
from pocketmq.errors import CannotStart

PIPELINES = {
    "copy": Listed("pocketmq.cli.pipeline.copy", "Copy messages between topics or clusters."),
    "fleet": Listed("pocketmq.cli.pipeline.fleet", "Compare strategies over many groups."),
    "health": Listed("pocketmq.cli.pipeline.health", "Report how rebalances went."),
    "ingest": Listed("pocketmq.cli.pipeline.ingest", "Write topics to Parquet, exactly once."),
}


class Pipelines(LazyGroup):
    """The group of pipelines. Their help works without the packages that they need."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a pipeline; raises `CannotStart` if the packages it needs are not installed."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in ("numpy", "pyarrow", "pyspark"):
                raise
            reason = f"{missing.name} is not installed; pip install 'pocketmq[spark]'"
            raise CannotStart(f"pipeline {ctx.invoked_subcommand}", reason) from missing


@click.command("pipeline", cls=Pipelines, listed=lambda: PIPELINES, context_settings=HELP)
def command() -> None:
    """Run a pipeline: on this machine, or on a Spark cluster with --master."""
