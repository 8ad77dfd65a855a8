"""What all admin commands have in common: options, connection, output, errors, exit codes."""

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
from pocketmq.cli.entry import Entry, entry_options
from pocketmq.cli.options import FiniteRange
from pocketmq.cli.output import printable

Work = Callable[..., Awaitable[Shown]]
_CLEAR = "\x1b[H\x1b[2J"
_WATCH = 2.0
LONGEST_LINE = 1000
"""Characters of a line about a mistake; it may quote what a server said."""


class Declared(NamedTuple):
    """A command, and the module that declares it."""

    module: str
    command: click.Command


COMMANDS: dict[str, Declared] = {}
"""The commands of the modules that were imported so far, by name."""


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """The options every command takes."""

    namesrv: str
    as_json: bool
    watch: float | None
    timeout: float
    entry: Entry

    def admin(self) -> Admin:
        """Make the admin these options describe."""
        return Admin(
            self.namesrv,
            credentials=self.entry.credentials,
            tls=self.entry.tls,
            timeout=self.timeout,
            request_timeout=self.timeout,
        )


_COMMON = (
    click.option(
        "-n",
        "--namesrvAddr",
        "namesrv",
        metavar="HOST:PORT",
        default="",
        help="Name server, several joined by ';'; usually the environment's NAMESRV_ADDR.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    click.option(
        "--watch",
        is_flag=False,
        flag_value=_WATCH,
        type=FiniteRange(0.05),
        metavar="[SECONDS]",
        help="Do it again every so many seconds (2), until Ctrl-C.",
    ),
    click.option(
        "--timeout",
        type=FiniteRange(0.001),
        default=5.0,
        show_default=True,
        help="Seconds for each question to a server.",
    ),
    entry_options,
)
_YES = click.option("-y", "--yes", is_flag=True, help="Do it without asking.")


def admin_command(
    name: str,
    *options: Callable[[Any], Any],
    asks: str | None = None,
    live: bool = False,
    cls: type[click.Command] = click.Command,
) -> Callable[[Work], click.Command]:
    """Make a click command of a coroutine function that takes an admin and its options.

    A command that destroys something `asks` first, with a question made from its options. One that
    is `live` goes on by itself on a terminal.
    """

    def make(work: Work) -> click.Command:
        def callback(**given: Any) -> int:
            interval = given.pop("interval", None)  # mqadmin's way to say --watch
            if given["watch"] is None:
                given["watch"] = interval
            if live and given["watch"] is None and not given["as_json"] and sys.stdout.isatty():
                given["watch"] = _WATCH
            given["entry"] = Entry.taken_from(given)
            common = Common(**{name: given.pop(name) for name in Common.__struct_fields__})
            if asks is not None and not given.pop("yes"):
                _confirm(asks.format(**given))
            return run(common, work, given)

        callback.__doc__ = work.__doc__
        decorated: Any = callback
        for option in reversed((*options, *_COMMON, *((_YES,) if asks is not None else ()))):
            decorated = option(decorated)
        settings = {"help_option_names": ["-h", "--help"]}
        made: click.Command = click.command(name, cls=cls, context_settings=settings)(decorated)
        COMMANDS[name] = Declared(work.__module__, made)
        return made

    return make


def run(common: Common, work: Work, given: dict[str, Any]) -> int:
    """Run a command's work and give its exit code; errors become one line and a code."""
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())
    gc.enable()  # see `pocketmq.cli.main`
    try:
        return asyncio.run(_run(common, work, given))
    except errors.MQError as error:
        complain(str(error))
        return exit_code(error)
    except KeyboardInterrupt:  # click would print an empty line
        return INTERRUPTED


async def _run(common: Common, work: Work, given: dict[str, Any]) -> int:
    async with common.admin() as admin:
        if common.watch is None:
            return await _show_all(await work(admin, **given), as_json=common.as_json)
        while True:
            try:
                shown = await work(admin, **given)
            except errors.MQError as error:
                shown = Shown([], {"error": str(error)}, (str(error),))
            if sys.stdout.isatty() and not common.as_json:
                sys.stdout.write(_CLEAR)
            await _show_all(shown, as_json=common.as_json)
            await asyncio.sleep(common.watch)


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
    """Print the outcome: the answer on stdout, what is missing on stderr."""
    if as_json:
        data = jsonable(shown.data)
        if shown.problems and isinstance(data, dict):
            data = data | {"problems": list(shown.problems)}
        print(msgspec.json.encode(data).decode())
    else:
        text = "\n".join(shown.lines)
        if text or shown.lines:
            print("\n".join(printable(line, keep="\t") for line in text.split("\n")))
    sys.stdout.flush()
    for problem in shown.problems:
        complain(problem)
    return PARTIAL if shown.problems else 0


def complain(problem: str) -> None:
    """Say what is wrong, in one line on stderr."""
    line = printable(" ".join(problem.split()))
    shown = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."
    print("pocketmq:", shown, file=sys.stderr)


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Say so with --yes: there is nobody to ask")
    if not click.confirm(question, err=True):
        raise click.Abort


FAILED = 1
WRONG_INPUT = 2
NOT_THERE = 3
NO_ANSWER = 4
NOT_ALLOWED = 5
PARTIAL = 6
INTERRUPTED = 130

_NOT_THERE_CODES = {
    int(errors.ResponseCode.QUERY_NOT_FOUND),
    int(errors.ResponseCode.USER_NOT_EXIST),
    int(errors.ResponseCode.POLICY_NOT_EXIST),
}


def exit_code(error: errors.MQError) -> int:
    """Give the exit code an error stands for."""
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
    if isinstance(
        error, errors.NameServersUnreachable | errors.TransportError | errors.BrokerNotFound
    ):
        return NO_ANSWER
    if isinstance(error, errors.NoPermission):
        return NOT_ALLOWED
    if isinstance(error, errors.ServerError) and error.code in _NOT_THERE_CODES:
        return NOT_THERE
    return FAILED
