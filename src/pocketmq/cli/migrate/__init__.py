"""The steps of a migration as commands."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
import msgspec

from pocketmq.admin.migration.copy_run import MigrationProgress
from pocketmq.admin.migration.copying import CopyRules
from pocketmq.admin.migration.ledger import MigrationLedger
from pocketmq.admin.migration.migration import Migration
from pocketmq.admin.migration.plan import MigrationChoice
from pocketmq.cli.lazy_group import CommandGroup
from pocketmq.cli.migrate.ends import Ends, ends_options
from pocketmq.cli.migrate.report import (
    copied_lines,
    group_lines,
    plan_lines,
    status_lines,
    verdict_lines,
)
from pocketmq.cli.options import FiniteRange
from pocketmq.cli.output import printable

INTERRUPTED = 130


@click.group("migrate", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Move topics, groups, messages and offsets to another cluster, while everything goes on.

    plan shows what would be done. copy --follow copies and goes on copying. offsets moves a group
    over when its members have stopped. verify compares both sides, message by message.
    """


def _chosen(command: Any) -> Any:
    for option in (
        click.option(
            "--without", multiple=True, help="Topic or group to leave behind; repeatable."
        ),
        click.option(
            "-g", "--group", "groups", multiple=True, help="Group; repeatable. Usually all."
        ),
        click.option(
            "-t", "--topic", "topics", multiple=True, help="Topic; repeatable. Usually all."
        ),
    ):
        command = option(command)
    return command


_STATE = click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    default="pocketmq-migration.sqlite",
    show_default=True,
    help="File that keeps how far the migration is.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@command.command("plan")
@_chosen
@_STATE
@_JSON
@ends_options
def plan(
    *,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    without: tuple[str, ...],
    state: Path,
    as_json: bool,
    **given: Any,
) -> int:
    """Show what would be done; nothing is changed. Ends with 1 if something stands in the way."""
    ends = Ends.taken_from(given)

    known = (
        MigrationLedger(state, ends.source, ends.target, create=False) if state.exists() else None
    )

    async def work(migration: Migration) -> int:
        outlook = await migration.outlook(known)
        _say(plan_lines(ends, outlook), outlook, as_json=as_json)
        return 1 if outlook.plan.problems else 0

    with known or nullcontext():
        return _run(ends, work, MigrationChoice(topics, groups, without))


@command.command("copy")
@_chosen
@_STATE
@click.option("--dry-run", is_flag=True, help="Show the plan, change nothing.")
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "--quiet",
    type=FiniteRange(0.0),
    metavar="SECONDS",
    help="Follow until nothing has come for so long and no message waits.",
)
@click.option("--move-delayed", is_flag=True, help="Move messages that wait, with their due time.")
@click.option("--exact-times", is_flag=True, help="Keep each time of birth exactly; slower.")
@click.option("--adopt", is_flag=True, help="Take over copies whose state file was lost.")
@click.option(
    "--patience",
    type=FiniteRange(0.0),
    default=60.0,
    show_default=True,
    help="Seconds to wait for servers that are away.",
)
@_JSON
@ends_options
@click.pass_context
def copy(
    context: click.Context,
    /,
    *,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    without: tuple[str, ...],
    state: Path,
    dry_run: bool,
    follow: bool,
    quiet: float | None,
    move_delayed: bool,
    exact_times: bool,
    adopt: bool,
    patience: float,
    as_json: bool,
    **given: Any,
) -> int:
    """Make topics and groups, and copy messages, queue by queue, in order.

    Without --follow it ends when all is copied that was there at its start. Ctrl-C ends it after
    what is under way. Whatever ended it, the same command goes on where it was.
    """
    if dry_run:
        names = ("topics", "groups", "without", "state", "as_json")
        chosen = {name: context.params[name] for name in names}
        return int(context.invoke(plan, **chosen, **given))
    ends = Ends.taken_from(given)
    rules = CopyRules(patience=patience, born_within=0.0 if exact_times else 1.0)
    following = follow or quiet is not None

    async def work(migration: Migration) -> int:
        with ExitStack() as stack:
            ledger = stack.enter_context(
                MigrationLedger(state, ends.source, ends.target, create=True)
            )
            stack.enter_context(stop_on_signals(migration.stop))
            async with showing_progress(migration.progress, following=following):
                done = await migration.copy(
                    ledger,
                    follow=following,
                    quiet=quiet,
                    move_delayed=move_delayed,
                    adopt=adopt,
                )
            stopped = migration.stop.is_set()
            _say(copied_lines(done, stopped=stopped), vars(done), as_json=as_json)
        until_stopped = follow and quiet is None
        return INTERRUPTED if stopped and not until_stopped else 0

    return _run(ends, work, MigrationChoice(topics, groups, without), rules)


@command.command("offsets")
@click.option("-g", "--group", "groups", multiple=True, help="Group; repeatable. Usually all.")
@_STATE
@click.option(
    "--wait",
    type=FiniteRange(0.0),
    default=10.0,
    show_default=True,
    help="Seconds for a copy that runs beside to come as far as the group.",
)
@_JSON
@ends_options
def offsets(
    *, groups: tuple[str, ...], state: Path, wait: float, as_json: bool, **given: Any
) -> int:
    """Have groups go on, on the target, behind the last message they have consumed here.

    Stop the group's members first; then run this, then start them on the target. Ends with 1 if a
    group has members on the target already: its offsets are left alone.
    """

    async def work(migration: Migration, ledger: MigrationLedger) -> int:
        moves = await migration.move_groups(ledger, groups, wait)
        _say(group_lines(moves), moves, as_json=as_json)
        return 0 if all(each.moved for each in moves) else 1

    return _go_on(Ends.taken_from(given), state, work)


@command.command("verify")
@_STATE
@_JSON
@ends_options
def verify(*, state: Path, as_json: bool, **given: Any) -> int:
    """Compare every message of both sides; ends with 1 if one is missing or changed."""

    async def work(migration: Migration, ledger: MigrationLedger) -> int:
        verdicts = await migration.verify(ledger)
        _say(verdict_lines(verdicts), verdicts, as_json=as_json)
        return 0 if all(each.sound for each in verdicts) else 1

    return _go_on(Ends.taken_from(given), state, work)


@command.command("status")
@_STATE
@_JSON
@ends_options
def status(*, state: Path, as_json: bool, **given: Any) -> int:
    """Tell how far a migration is, also while it runs."""

    async def work(migration: Migration, ledger: MigrationLedger) -> int:
        rows = await migration.status(ledger)
        _say(status_lines(rows), rows, as_json=as_json)
        return 0

    return _go_on(Ends.taken_from(given), state, work)


def _go_on(
    ends: Ends, state: Path, work: Callable[[Migration, MigrationLedger], Awaitable[int]]
) -> int:
    """Work on a migration that has begun."""

    async def main(migration: Migration) -> int:
        with MigrationLedger(state, ends.source, ends.target, create=False) as ledger:
            return await work(migration, ledger)

    return _run(ends, main)


def _run(
    ends: Ends,
    work: Callable[[Migration], Awaitable[int]],
    wanted: MigrationChoice | None = None,
    rules: CopyRules | None = None,
) -> int:
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())

    async def main() -> int:
        source, target = ends.sides()
        async with Migration(source, target, wanted=wanted, rules=rules) as migration:
            return await work(migration)

    return asyncio.run(main())


def _say(lines: list[str], data: object, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(msgspec.json.encode(data).decode() + "\n")
        return
    for line in lines:
        click.echo(printable(line))


_EVERY = 0.5
_CLEAR = "\r\x1b[K"


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Have the first Ctrl-C or SIGTERM ask for an end, and the second one be one."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def asked() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, asked)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def showing_progress(progress: MigrationProgress, *, following: bool) -> AsyncIterator[None]:
    """Show how far it is while it runs: often on a terminal, once it has caught up elsewhere."""
    task = asyncio.create_task(_show(progress, following=following))
    try:
        yield
    finally:
        task.cancel()
        if sys.stderr.isatty():
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


async def _show(progress: MigrationProgress, *, following: bool) -> None:
    loop = asyncio.get_running_loop()
    told, before, then = False, 0, loop.time()
    while True:
        await asyncio.sleep(_EVERY)
        now = loop.time()
        rate = (progress.copied - before) / (now - then)
        before, then = progress.copied, now
        if sys.stderr.isatty():
            text = f"{progress.copied} messages copied, {progress.behind} to go, {rate:.0f}/s" + (
                ", following" if following and progress.caught_up else ""
            )
            sys.stderr.write(_CLEAR + text)
            sys.stderr.flush()
        elif following and progress.caught_up and not told:
            told = True
            sys.stderr.write(f"caught up after {progress.copied} messages; following\n")
            sys.stderr.flush()
