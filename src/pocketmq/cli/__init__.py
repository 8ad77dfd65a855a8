"""The `pocketmq` command: one entry, with each subcommand in a module of its own.

Owns the table of subcommands, how mistakes are told and the exit codes: 0 done, 1 failed or
differs, 2 wrong input. A subcommand's module is imported only when it is called, so that a
command starts as fast as its own part allows; the module has the click command as `command`.
"""

import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from pocketmq import __version__
from pocketmq.errors import CannotStart, InvalidInput, MQError

# name -> (module, one line for `pocketmq --help`)
SUBCOMMANDS = {
    "allocate": ("pocketmq.cli.allocate", "Preview and compare allocations, without a cluster."),
    "broker": ("pocketmq.cli.broker", "Run a broker alone."),
    "demo": ("pocketmq.cli.demo", "See load balancing at work."),
    "namesrv": ("pocketmq.cli.namesrv", "Run a name server alone."),
    "up": ("pocketmq.cli.up", "Run a cluster on this machine."),
}


class Subcommands(click.Group):
    """A group that knows its commands by name and imports them on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the subcommands."""
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one subcommand."""
        if cmd_name not in SUBCOMMANDS:
            return None
        command = import_module(SUBCOMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the one most like it."""
        if args and not args[0].startswith("-") and args[0] not in SUBCOMMANDS:
            from difflib import get_close_matches

            nearest = get_close_matches(args[0][:100], SUBCOMMANDS, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "see pocketmq --help"
            raise click.UsageError(f"there is no command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUBCOMMANDS[name][1]) for name in sorted(SUBCOMMANDS)])


@click.command(
    cls=Subcommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="pocketmq %(version)s")
@click.pass_context
def pocketmq(ctx: click.Context) -> None:
    """RocketMQ in Python: clients, brokers, pipelines and the tools around them."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and give the exit code; a mistake is told in one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        result = pocketmq.main(arguments, prog_name="pocketmq", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as problem:
        return _tell(problem.format_message(), problem.exit_code)
    except MQError as problem:
        return _tell(str(problem), 2 if isinstance(problem, InvalidInput | CannotStart) else 1)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader has seen enough (`| head`). Python would complain again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return result if isinstance(result, int) else 0


def main() -> NoReturn:
    """Run the command line as a program."""
    sys.exit(run())


def _tell(message: str, exit_code: int) -> int:
    line = " ".join(message.split())
    print("pocketmq:", "".join(c if c.isprintable() else "?" for c in line), file=sys.stderr)
    return exit_code
