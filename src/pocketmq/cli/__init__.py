"""The `pocketmq` command: one entry, with each subcommand in a module of its own.

Owns the list of subcommands, the error line on stderr and the exit codes: 0 done, 1 failed or
differs, 2 wrong input, 130 interrupted; `consume` also exits with 3, `admin` with 3 to 6 (see
`admin.frame`). A subcommand's module is imported only when it is called, so that a command starts
as fast as its own part allows; the module has the click command as `command`.
"""

import gc
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from pocketmq import __version__, native
from pocketmq.cli.commands import HELP, LazyGroup, Listed, explained
from pocketmq.cli.output import printable
from pocketmq.errors import CannotStart, InvalidInput, MQError, NameServersUnreachable

LONGEST_LINE = 1000
"""Maximum number of characters of an error line; it may quote the input, or a file."""

SUBCOMMANDS = {
    "admin": Listed("pocketmq.cli.admin", "Operate a cluster with mqadmin's subcommands."),
    "allocate": Listed("pocketmq.cli.allocate", "Preview and compare allocations offline."),
    "bench": Listed("pocketmq.cli.bench", "Measure a cluster's throughput and latency."),
    "broker": Listed("pocketmq.cli.broker", "Run a broker alone."),
    "consume": Listed("pocketmq.cli.consume", "Print the messages of a topic, one per line."),
    "dashboard": Listed("pocketmq.cli.dashboard", "Show a cluster in the browser."),
    "demo": Listed("pocketmq.cli.demo", "Watch load balancing at work."),
    "explain": Listed("pocketmq.cli.admin.balance", "Explain a group's assignment and problems."),
    "migrate": Listed("pocketmq.cli.migrate", "Move to another cluster without downtime."),
    "namesrv": Listed("pocketmq.cli.namesrv", "Run a name server alone."),
    "pipeline": Listed(
        "pocketmq.cli.pipeline", "Run jobs over topics: copy, fleet, health, ingest."
    ),
    "produce": Listed("pocketmq.cli.produce", "Send lines of stdin as messages."),
    "proxy": Listed("pocketmq.cli.proxy", "Serve RocketMQ 5's gRPC clients before a cluster."),
    "store": Listed("pocketmq.cli.store", "Check or repair a stopped broker's directory."),
    "top": Listed("pocketmq.cli.admin.overview", "Watch a cluster, its topics and groups live."),
    "up": Listed("pocketmq.cli.up", "Run a cluster on this machine."),
    "what-if": Listed("pocketmq.cli.admin.balance", "Simulate events on a live group."),
}
_BRIEF = ("admin", "explain", "top", "what-if")


class PocketmqCommands(LazyGroup):
    """The group of all commands."""

    def load(self, module: str, name: str) -> click.Command:
        """Import a command; some are those of `pocketmq admin`, for short."""
        if not module.startswith("pocketmq.cli.admin."):
            return super().load(module, name)
        from pocketmq.cli.admin import command as admin

        found = admin.get_command(click.Context(admin), name)
        assert found is not None
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error may get a hint that only its options explain."""
        try:
            return super().invoke(ctx)
        except NameServersUnreachable as error:
            raise click.ClickException(explained(ctx, error)) from error


@click.command(cls=PocketmqCommands, listed=lambda: SUBCOMMANDS, context_settings=HELP)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, wanted: _show_version(context) if wanted else None,
    help="Show the version and exit.",
)
def pocketmq() -> None:
    """RocketMQ in Python: clients, brokers, pipelines and tools."""


def _show_version(context: click.Context) -> None:
    from pocketmq.net.loops import loop_description  # slow to import

    click.echo(f"pocketmq {__version__}, {native.description}, {loop_description()}")
    context.exit()


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; an error is one line on stderr."""
    _prepare_streams()
    try:
        result = pocketmq.main(arguments, prog_name="pocketmq", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as problem:
        return _report(problem.format_message(), problem.exit_code)
    except MQError as problem:
        return _report(str(problem), 2 if isinstance(problem, InvalidInput | CannotStart) else 1)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:  # the reader has closed the pipe (`| head`)
        _discard_output()
        return 1
    except OSError as problem:  # such as a full disk under the output
        _discard_output()
        where = "" if problem.filename is None else f" ({problem.filename})"
        return _report(f"{problem.strerror or problem}{where}", 1)
    return result if isinstance(result, int) else 0


def main() -> NoReturn:
    """Run the command line as a program."""
    if sys.argv[1:2] and sys.argv[1] in _BRIEF:
        _run_briefly()
    sys.exit(run())


def _run_briefly() -> NoReturn:
    """Run a command that only queries and prints, as fast as possible.

    A quarter of its time would go into garbage collection while modules are loaded, and into
    unloading them at exit. When it returns, nothing is open, no thread runs, all is printed: so
    exiting without cleaning up loses nothing.
    """
    gc.disable()  # until the command itself runs
    code = run()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _prepare_streams() -> None:
    """Make the standard streams accept any text, and replace closed ones."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent; no file of ours must get its number
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # for names the terminal's encoding lacks


def _discard_output() -> None:
    """Discard what is still buffered, or Python would report the error again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(message: str, exit_code: int) -> int:
    line = printable(" ".join(message.split()))
    shown = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."
    with suppress(OSError):  # stderr is closed, too
        print("pocketmq:", shown, file=sys.stderr)
    return exit_code
