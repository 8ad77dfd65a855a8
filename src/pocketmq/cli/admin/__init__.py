"""`pocketmq admin`: mqadmin's subcommands by their names and flags, and some of our own.

Owns the table of subcommands. A command's module is imported when it is called; it holds click
commands by name in `COMMANDS`.
"""

from importlib import import_module

import click
from click.shell_completion import CompletionItem

from pocketmq.cli.admin.table import ALIASES, SUBCOMMANDS
from pocketmq.cli.lazy_group import CommandGroup


class AdminCommands(CommandGroup):
    """A group that knows its commands by name and imports them on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the subcommands."""
        return sorted(SUBCOMMANDS, key=str.lower)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one subcommand."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in SUBCOMMANDS:
            return None
        module = import_module(f"pocketmq.cli.admin.{SUBCOMMANDS[name][0]}")
        command = module.COMMANDS[name]
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the one most like it."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in {*SUBCOMMANDS, *ALIASES}:
            from difflib import get_close_matches

            by_lower = {each.lower(): each for each in SUBCOMMANDS}
            nearest = get_close_matches(name[:100].lower(), by_lower, n=1)
            hint = f"did you mean {by_lower[nearest[0]]}?" if nearest else "see pocketmq admin -h"
            raise click.UsageError(f"there is no admin command {name!r}: {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUBCOMMANDS[name][1]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a subcommand's name without importing any."""
        return [
            CompletionItem(name, help=SUBCOMMANDS[name][1])
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]


@click.command(
    "admin",
    cls=AdminCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Ends with 0 if done, 1 failed, 2 wrong input, 3 not there, 4 no answer, 5 not allowed,"
    " 6 done in part. Shell completion: docs/reference/admin.md.",
)
def command() -> None:
    """Operate a cluster, PocketMQ's or Apache's, with the subcommands of mqadmin."""
