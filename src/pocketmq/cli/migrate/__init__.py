"""`pocketmq migrate`: move to another cluster, step by step, while clients keep running."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import click

from pocketmq.admin.migration.copying import CopyRules
from pocketmq.admin.migration.ledger import MigrationLedger
from pocketmq.admin.migration.migration import Migration
from pocketmq.admin.migration.plan import MigrationChoice
from pocketmq.cli.commands import HELP, CommandGroup, FiniteRange, all_of, json_option
from pocketmq.cli.migrate import report
from pocketmq.cli.migrate.ends import Ends, ends_options
from pocketmq.cli.output import print_json, printable
from pocketmq.cli.progress import ProgressBar

INTERRUPTED = 130


@click.group("migrate", cls=CommandGroup, context_settings=HELP)
def command() -> None:
    """Move topics, groups, messages and offsets to another cluster without downtime.

    plan shows what would be done. copy --follow copies, and keeps copying new messages. offsets
    moves a group once its members have stopped. verify compares both sides message by message.
    """


_GROUPS = click.option(
    "-g", "--group", "groups", multiple=True, help="Group to move; repeatable.  [default: all]"
)
_chosen = all_of(
    click.option(
        "-t", "--topic", "topics", multiple=True, help="Topic to move; repeatable.  [default: all]"
    ),
    _GROUPS,
    click.option("--without", multiple=True, help="Topic or group to skip; repeatable."),
)
_STATE = click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    default="pocketmq-migration.sqlite",
    show_default=True,
    help="File that records the progress of the migration.",
)
_JSON = json_option()


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
    """Show what would be done, without changing anything.

    Exits with 1 if something prevents the migration.
    """
    ends = Ends.taken_from(given)

    known = (
        MigrationLedger(state, ends.source, ends.target, create=False) if state.exists() else None
    )

    async def work(migration: Migration) -> int:
        outlook = await migration.outlook(known)
        _print(report.plan_lines(ends, outlook), outlook, as_json=as_json)
        return 1 if outlook.plan.problems else 0

    with known or nullcontext():
        return _run(ends, work, MigrationChoice(topics, groups, without))


@command.command("copy")
@_chosen
@_STATE
@click.option("--dry-run", is_flag=True, help="Show the plan without changing anything.")
@click.option("--follow", is_flag=True, help="Keep copying new messages until Ctrl-C.")
@click.option(
    "--quiet",
    type=FiniteRange(0.0),
    metavar="SECONDS",
    help="Follow until SECONDS pass without a new message and none is delayed.",
)
@click.option(
    "--move-delayed", is_flag=True, help="Move delayed messages, with their delivery time."
)
@click.option("--exact-times", is_flag=True, help="Preserve every born timestamp exactly; slower.")
@click.option("--adopt", is_flag=True, help="Adopt copies whose state file was lost.")
@click.option(
    "--patience",
    type=FiniteRange(0.0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Retry unresponsive servers for SECONDS.",
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
    """Create topics and groups, and copy messages.

    Messages are copied queue by queue, in order. Without --follow it stops when everything is
    copied that was there at its start. Ctrl-C finishes in-flight work, then stops. However it was
    stopped, the same command resumes.
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
            stack.enter_context(_stop_on_signals(migration.stop))
            async with report.showing_progress(migration.progress, following=following):
                done = await migration.copy(
                    ledger,
                    follow=following,
                    quiet=quiet,
                    move_delayed=move_delayed,
                    adopt=adopt,
                )
            stopped = migration.stop.is_set()
            _print(report.copied_lines(done, stopped=stopped), vars(done), as_json=as_json)
        until_stopped = follow and quiet is None
        return INTERRUPTED if stopped and not until_stopped else 0

    return _run(ends, work, MigrationChoice(topics, groups, without), rules)


@command.command("offsets")
@_GROUPS
@_STATE
@click.option(
    "--wait",
    type=FiniteRange(0.0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait for a running copy to reach the group's offsets.",
)
@_JSON
@ends_options
def offsets(
    *, groups: tuple[str, ...], state: Path, wait: float, as_json: bool, **given: Any
) -> int:
    """Copy consumer offsets so groups resume on the target.

    Stop the group's members first; then run this, then start them on the target. Exits with 1 if a
    group already has members on the target: its offsets are not changed.
    """

    async def work(migration: Migration, ledger: MigrationLedger) -> int:
        moves = await migration.move_groups(ledger, groups, wait)
        _print(report.group_lines(moves), moves, as_json=as_json)
        return 0 if all(each.moved for each in moves) else 1

    return _resume(Ends.taken_from(given), state, work)


@command.command("verify")
@_STATE
@_JSON
@ends_options
def verify(*, state: Path, as_json: bool, **given: Any) -> int:
    """Compare every message of both sides.

    Exits with 1 if one is missing or changed.
    """

    async def work(migration: Migration, ledger: MigrationLedger) -> int:
        with ProgressBar("comparing", "queues") as bar:
            verdicts = await migration.verify(ledger, bar.update)
        _print(report.verdict_lines(verdicts), verdicts, as_json=as_json)
        return 0 if all(each.sound for each in verdicts) else 1

    return _resume(Ends.taken_from(given), state, work)


@command.command("status")
@_STATE
@_JSON
@ends_options
def status(*, state: Path, as_json: bool, **given: Any) -> int:
    """Show the progress of a migration, also while it runs."""

    async def work(migration: Migration, ledger: MigrationLedger) -> int:
        rows = await migration.status(ledger)
        _print(report.status_lines(rows), rows, as_json=as_json)
        return 0

    return _resume(Ends.taken_from(given), state, work)


def _resume(
    ends: Ends, state: Path, work: Callable[[Migration, MigrationLedger], Awaitable[int]]
) -> int:
    """Run a step of a migration that has a state file."""

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


def _print(lines: list[str], data: object, *, as_json: bool) -> None:
    if as_json:
        print_json(data)
        return
    for line in lines:
        click.echo(printable(line))


@contextmanager
def _stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM set `stop`; the second one interrupts as usual."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def forget() -> None:
        with suppress(NotImplementedError):  # Windows: loops have no signal handlers
            for number in numbers:
                loop.remove_signal_handler(number)

    def asked() -> None:
        stop.set()
        forget()

    with suppress(NotImplementedError):  # Windows: Ctrl-C interrupts
        for number in numbers:
            loop.add_signal_handler(number, asked)
    try:
        yield
    finally:
        forget()
