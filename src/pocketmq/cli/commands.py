"""What commands are made of: groups that are lists until a command is called, and shared options.

A command's module is imported only when the command is called. Every command imports this file,
so it imports next to nothing itself.
"""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pocketmq.errors import MQError, NameServersUnreachable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""The context settings of every command: `-h` is `--help`."""


class CommandGroup(click.Group):
    """A group that shows its help if it is called without a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, show the help and exit with 0."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)


class Listed(NamedTuple):
    """A command in the list of its group."""

    module: str
    help: str


class LazyGroup(CommandGroup):
    """A group that lists and completes its commands without importing them.

    `listed` returns the commands by name; it is called once, when the list is needed.
    """

    def __init__(
        self,
        *args: Any,
        listed: Callable[[], Mapping[str, Listed]],
        aliases: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._listed = listed
        self._aliases = aliases or {}

    def load(self, module: str, name: str) -> click.Command:  # noqa: ARG002
        """Import a command: the one its module has as `command`."""
        command = import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, sorted."""
        return sorted(self._listed(), key=str.lower)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, imported now; None if there is none of this name."""
        name = self._aliases.get(cmd_name, cmd_name)
        listed = self._listed().get(name)
        return None if listed is None else self.load(listed.module, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown name suggests the most similar one."""
        name = args[0] if args else ""
        known = self._listed()
        if name and not name.startswith("-") and name not in known and name not in self._aliases:
            from difflib import get_close_matches

            by_lower = {each.lower(): each for each in known}
            nearest = get_close_matches(name[:100].lower(), by_lower, n=1)
            path = ctx.command_path
            hint = f"did you mean {by_lower[nearest[0]]}?" if nearest else f"see {path} --help"
            raise click.UsageError(f"unknown command {name!r}: {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        known = self._listed()
        with formatter.section("Commands"):
            formatter.write_dl([(name, known[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete the name of a command, or an option of the group."""
        from click.shell_completion import CompletionItem

        known = self._listed()
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=known[name].help) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


Decorator = Callable[[Any], Any]
ENVIRONMENT = "NAMESRV_ADDR"  # as the client has it, which takes long to import
LOCAL = "127.0.0.1:9876"
"""Where `pocketmq up` listens."""
_ASSUMED = "pocketmq.cli.commands.assumed"


class FiniteRange(click.FloatRange):
    """A range of floats without `inf`, and without `nan`, which no bound keeps out."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number, or fail as click's types do."""
        found = float(super().convert(value, param, ctx))
        if not isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


def namesrv_option(name: str = "--namesrv", *, what: str = "Name servers") -> Decorator:
    """Return the option -n, the parameter `namesrv`; without it, NAMESRV_ADDR or the local one."""
    return click.option(
        "-n",
        name,
        "namesrv",
        metavar="HOST:PORT",
        default="",
        callback=_or_local,
        help=f"{what}, separated by ';'.  [default: ${ENVIRONMENT} or {LOCAL}]",
    )


def _or_local(context: click.Context, _option: click.Parameter, given: str) -> str:
    known = given or os.environ.get(ENVIRONMENT, "")
    if known.strip(" ;"):
        return known
    context.meta[_ASSUMED] = True
    return LOCAL


def explained(context: click.Context, error: MQError) -> str:
    """Return an error's text, with a hint if no server answers where none was named."""
    if isinstance(error, NameServersUnreachable) and context.meta.get(_ASSUMED):
        return f"{error}; start a cluster with 'pocketmq up', or name one with -n or {ENVIRONMENT}"
    return str(error)


def json_option(text: str = "Print one JSON document.") -> Decorator:
    """Return the option --json, the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def all_of(*options: Decorator) -> Decorator:
    """Join options to one decorator; they are listed in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add
