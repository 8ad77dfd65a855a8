"""`pocketmq dashboard`: the cluster in the browser."""

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pocketmq.cli.entry import Entry, entry_options
from pocketmq.cli.server_options import (
    chosen_log,
    end_at_once,
    listening_options,
    logging_options,
)
from pocketmq.embedded.early_stop import remember_stop_signals
from pocketmq.embedded.lifeline import die_with_parent
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.errors import CannotStart

if TYPE_CHECKING:
    from pocketmq.dashboard.settings import DashboardSettings

PASSWORD_VARIABLE = "POCKETMQ_DASHBOARD_PASSWORD"  # noqa: S105 - a name, not a secret
_LONGEST_FILE = 4096


@click.command("dashboard", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-n",
    "--namesrv",
    metavar="HOST:PORT",
    default="",
    help="Name server, several joined by ';'; usually the environment's NAMESRV_ADDR.",
)
@listening_options(8080, "the dashboard")
@click.option(
    "--allow-actions", is_flag=True, help="Let pages change the cluster; each asks first."
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    help=f"File with the password that visitors need; or {PASSWORD_VARIABLE}.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Further host name in browsers' address lines; repeatable.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="End with the parent.")
@entry_options
@logging_options
def command(
    *,
    namesrv: str,
    host: str,
    port: int,
    allow_actions: bool,
    password_file: Path | None,
    names: tuple[str, ...],
    with_parent: bool,
    log_level: str,
    log_json: bool,
    **given: Any,
) -> None:
    """Show a cluster, PocketMQ's or Apache's, in the browser.

    Prints `ready http://HOST:PORT` once it serves; everything else goes to stderr. Others than this
    machine get in with --host and a password. SIGTERM or Ctrl-C stops it.
    """
    remember_stop_signals()
    check_installed()
    from pocketmq.dashboard.settings import DashboardSettings

    settings = DashboardSettings(
        host=host,
        port=port,
        password=_password(password_file),
        allow_actions=allow_actions,
        names=names,
    )
    log = set_up_logging(chosen_log(log_level, log_json))
    if with_parent:
        die_with_parent()
    lifeline = 0 if with_parent else None
    asyncio.run(_serve(namesrv, Entry.taken_from(given), settings, log, lifeline))


def _password(file: Path | None) -> str | None:
    """Read the password: the first line of a file, else from the environment."""
    if file is None:
        import os

        return os.environ.get(PASSWORD_VARIABLE) or None
    try:
        with file.open(encoding="utf-8") as lines:
            return lines.read(_LONGEST_FILE).splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it holds no password"
        raise CannotStart("the dashboard", f"{file}: {reason}") from problem


async def _serve(
    namesrv: str,
    entry: Entry,
    settings: "DashboardSettings",
    log: StderrLines,
    lifeline: int | None,
) -> None:
    from pocketmq.admin.admin import Admin
    from pocketmq.dashboard.server import Dashboard
    from pocketmq.embedded.stopping import serve_until_asked

    admin = Admin(namesrv, credentials=entry.credentials, tls=entry.tls)
    dashboard = Dashboard(admin, settings)

    # What keeps it from starting is told once, as the reason why it ends.
    client_log = logging.getLogger("pocketmq.client")
    client_log.setLevel(logging.ERROR)

    def announce(address: str) -> None:
        client_log.setLevel(logging.NOTSET)
        log.started()
        with suppress(OSError):
            sys.stdout.write(f"ready {address}\n")
            sys.stdout.flush()

    await serve_until_asked(
        dashboard.start, dashboard.stop, announce=announce, force=end_at_once, lifeline=lifeline
    )


logger = logging.getLogger("pocketmq.cluster")

_PATIENCE = 30.0
"""Seconds for it to start."""
_GRACE = 10.0
"""Seconds for it to stop."""


def check_installed() -> None:
    """Raise `CannotStart` if the packages a dashboard needs are not installed."""
    try:
        found = find_spec("nicegui") is not None
    except ValueError:  # Python's answer for a module that was taken away
        found = False
    if not found:
        reason = "it needs further packages: pip install 'pocketmq[dashboard]'"
        raise CannotStart("the dashboard", reason)


class DashboardChild:
    """Starts and ends the process. Belongs to one event loop."""

    def __init__(self, port: int, *arguments: str) -> None:
        self._arguments = ("--port", str(port), *arguments)
        self._process: Process | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, namesrv: str) -> str:
        """Start it and give its address. Raises `CannotStart`; it has told the reason itself."""
        command = (sys.executable, "-m", "pocketmq.cli", "dashboard", "--with-parent")
        self._process = await asyncio.create_subprocess_exec(
            *command, "-n", namesrv, *self._arguments, stdin=PIPE, stdout=PIPE, process_group=0
        )
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), _PATIENCE)
        except TimeoutError:
            raise CannotStart("the dashboard", f"not ready after {_PATIENCE:.0f} s") from None
        word, _, address = line.decode().strip().partition(" ")
        if word != "ready":
            raise CannotStart("the dashboard", "it has ended while it started")
        self._watching = asyncio.create_task(self._watch(self._process))
        return address

    async def stop(self) -> None:
        """End it. Harmless before `start`, and twice."""
        if self._watching is not None:
            self._watching.cancel()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _GRACE)
        except TimeoutError:
            process.kill()
            await process.wait()

    def kill_now(self) -> None:
        """End it without waiting."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _watch(self, process: Process) -> None:
        code = await process.wait()
        logger.warning("the dashboard has ended by itself with code %d", code)
