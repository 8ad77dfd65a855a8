"""Commands that have commands."""

import click


class CommandGroup(click.Group):
    """A group that shows its help where a subcommand is missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what comes before the subcommand; without anything show help and end."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)
