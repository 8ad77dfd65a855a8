"""What all admin commands share: options, connection, output, errors, exit codes."""

import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import click
import msgspec

from pocketmq import errors
from pocketmq.admin.admin import Admin
from pocketmq.cli.admin.shown import Shown, jsonable
from pocketmq.cli.commands import HELP, FiniteRange, all_of, explained, json_option, namesrv_option
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.cli.output import printable
from pocketmq.cli.progress import ProgressBar

FAILED = 1
WRONG_INPUT = 2
NOT_THERE = 3
NO_ANSWER = 4
NOT_ALLOWED = 5
PARTIAL = 6
INTERRUPTED = 130

LONGEST_LINE = 1000
"""Maximum number of characters of an error line; it may quote a server."""

_WATCH = 2.0
_NOT_THERE_CODES = {
    int(errors.ResponseCode.QUERY_NOT_FOUND),
    int(errors.ResponseCode.USER_NOT_EXIST),
    int(errors.ResponseCode.POLICY_NOT_EXIST),
}

Work = Callable[..., Awaitable[Shown]]


class Declared(NamedTuple):
    """A command, and the module that declares it."""

    module: str
    command: click.Command


COMMANDS: dict[str, Declared] = {}
"""The commands of the modules that were imported so far, by name."""


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the options that every command has."""

    namesrv: str
    as_json: bool
    watch: float | None
    timeout: float
    entry: Entry

    def admin(self) -> Admin:
        """Return an admin with these options."""
        return Admin(
            self.namesrv,
            credentials=self.entry.credentials,
            tls=self.entry.tls,
            timeout=self.timeout,
            request_timeout=self.timeout,
        )


_WATCHED = click.option(
    "--watch",
    is_flag=False,
    flag_value=_WATCH,
    type=FiniteRange(0.05),
    metavar="[SECONDS]",
    help=f"Repeat every SECONDS until Ctrl-C; without a number, every {_WATCH:.0f}.",
)
_CHANGING = (
    "add", "clean", "clone", "copy", "create", "delete", "export", "rebalance", "remapping",
    "reset", "set", "skip", "update", "wipe",
)  # fmt: skip
"""How the names of commands begin that change something, which nobody wants to repeat."""
_TIMEOUT = click.option(
    "--timeout",
    type=FiniteRange(0.001),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Timeout of each request.",
)
_YES = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def admin_command(
    name: str,
    *options: Callable[[Any], Any],
    asks: str | None = None,
    live: bool = False,
    cls: type[click.Command] = click.Command,
) -> Callable[[Work], click.Command]:
    """Declare a command: a coroutine function that takes an admin and the values of its options.

    The first line of its docstring is shown in the list of commands. A destructive command `asks`
    for confirmation, with a question made from its options. One that is `live` repeats itself on a
    terminal.
    """

    def declare(work: Work) -> click.Command:
        def callback(**given: Any) -> int:
            interval = given.pop("interval", None)  # mqadmin's name of --watch
            if given.setdefault("watch", None) is None:
                given["watch"] = interval
            if live and given["watch"] is None and not given["as_json"] and sys.stdout.isatty():
                given["watch"] = _WATCH
            given["entry"] = Entry.taken_from(given)
            common = Common(**{name: given.pop(name) for name in Common.__struct_fields__})
            if asks is not None and not given.pop("yes"):
                _confirm(asks.format(**given))
            return run(common, work, given)

        callback.__doc__ = work.__doc__
        watched = () if name.startswith(_CHANGING) else (_WATCHED,)
        asked = () if asks is None else (_YES,)
        common = (namesrv_option("--namesrvAddr"), json_option(), *watched, _TIMEOUT, entry_options)
        decorated = all_of(*options, *common, *asked)(callback)
        made: click.Command = click.command(name, cls=cls, context_settings=HELP)(decorated)
        COMMANDS[name] = Declared(work.__module__, made)
        return made

    return declare


def run(common: Common, work: Work, given: dict[str, Any]) -> int:
    """Run a command and return its exit code; an error is printed as one line."""
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())
    gc.enable()  # see `pocketmq.cli.main`
    try:
        return asyncio.run(_run(common, work, given))
    except errors.MQError as error:
        complain(explained(click.get_current_context(), error))
        return exit_code(error)
    except KeyboardInterrupt:  # click would print an empty line
        return INTERRUPTED


async def _run(common: Common, work: Work, given: dict[str, Any]) -> int:
    name = click.get_current_context().command_path
    with ProgressBar(name, wanted=common.watch is None) as bar:
        async with common.admin() as admin:
            if common.watch is not None:
                return await _watch(common, admin, work, given)
            shown = await work(admin, **given)
            bar.close()  # before the first line of the result
            return await _show_all(shown, as_json=common.as_json)


async def _watch(common: Common, admin: "Admin", work: Work, given: dict[str, Any]) -> int:
    assert common.watch is not None

    async def attempt() -> Shown:
        try:
            return await work(admin, **given)
        except errors.MQError as error:
            return Shown([], {"error": str(error)}, (str(error),))

    shown = await attempt()
    if sys.stdout.isatty() and not common.as_json:
        shown = await _show_live(shown, attempt, common.watch)
    while True:
        await _show_all(shown, as_json=common.as_json)
        await asyncio.sleep(common.watch)
        shown = await attempt()


async def _show_live(
    shown: Shown, attempt: Callable[[], Awaitable[Shown]], interval: float
) -> Shown:
    """Redraw the outcome in place until the command is interrupted; return one that is a stream.

    A stream is printed as it comes: it may be longer than memory. Problems come first: on a screen
    that is too small the last lines are cut off.
    """
    if shown.more is not None:
        return shown
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, auto_refresh=False) as live:
        while True:
            lines = [*(f"pocketmq: {problem}" for problem in shown.problems), *shown.lines]
            live.update(Text(_printable("\n".join(lines)), overflow="fold"), refresh=True)
            await asyncio.sleep(interval)
            shown = await attempt()
            if shown.more is not None:
                return shown


async def _show_all(shown: Shown, *, as_json: bool) -> int:
    if shown.more is None:
        return show(shown, as_json=as_json)
    async for part in shown.more:
        if as_json:
            for item in part.data:
                show(Shown([], item), as_json=True)
        else:
            show(part, as_json=False)
    return 0


def show(shown: Shown, *, as_json: bool) -> int:
    """Print an outcome: the result on stdout, what is missing on stderr. Return the exit code."""
    if as_json:
        data = jsonable(shown.data)
        if shown.problems and isinstance(data, dict):
            data = data | {"problems": list(shown.problems)}
        print(msgspec.json.encode(data).decode())
    elif shown.lines:
        print(_printable("\n".join(shown.lines)))
    sys.stdout.flush()
    for problem in shown.problems:
        complain(problem)
    return PARTIAL if shown.problems else shown.code


def complain(problem: str) -> None:
    """Print an error as one line on stderr."""
    line = printable(" ".join(problem.split()), keep="\t")
    shown = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."
    print("pocketmq:", shown, file=sys.stderr)


def _printable(text: str) -> str:
    return printable(text, keep="\t\n")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Refusing without a terminal; pass --yes to confirm")
    if not click.confirm(question, err=True):
        raise click.Abort


def exit_code(error: errors.MQError) -> int:
    """Return the exit code of an error."""
    if isinstance(error, errors.SendFailed) and error.last_error is not None:
        return exit_code(error.last_error)
    if isinstance(error, errors.InvalidInput | errors.CannotStart):
        return WRONG_INPUT
    if isinstance(
        error,
        errors.Absent
        | errors.RouteNotFound
        | errors.TopicNotFound
        | errors.SubscriptionGroupNotFound
        | errors.ConsumerOffline,
    ):
        return NOT_THERE
    unreachable = errors.NameServersUnreachable | errors.TransportError | errors.BrokerNotFound
    if isinstance(error, unreachable):
        return NO_ANSWER
    if isinstance(error, errors.NoPermission):
        return NOT_ALLOWED
    if not isinstance(error, errors.ServerError):
        return FAILED
    if error.code == errors.ResponseCode.INVALID_PARAMETER:
        return WRONG_INPUT
    return NOT_THERE if error.code in _NOT_THERE_CODES else FAILED
