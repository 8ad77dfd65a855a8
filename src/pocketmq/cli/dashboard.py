"""`pocketmq dashboard`: the cluster in the browser; alone, or as a child of `pocketmq up`."""

import logging
import os
import re
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pocketmq.cli import server_options as servers
from pocketmq.cli.commands import HELP, namesrv_option
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.embedded.own_process import die_with_parent, remember_stop_signals
from pocketmq.embedded.server_logging import StderrLines, set_up_logging
from pocketmq.errors import CannotStart
from pocketmq.net import loops

if TYPE_CHECKING:
    from pocketmq.dashboard.settings import DashboardSettings

PASSWORD_VARIABLE = "POCKETMQ_DASHBOARD_PASSWORD"  # noqa: S105 - a name, not a secret
_LONGEST_FILE = 4096
_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


@click.command("dashboard", context_settings=HELP)
@namesrv_option()
@servers.listening_options(8080)
@click.option(
    "--allow-actions", is_flag=True, help="Let pages change the cluster, after a confirmation."
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    help=f"File with the login password.  [default: ${PASSWORD_VARIABLE}]",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Another host name that browsers may use; repeatable.",
)
@click.option(
    "--events-topic",
    metavar="TOPIC",
    help="Topic that members publish their history to, for metrics of hand-overs.",
)
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Another cluster to show, by its name servers; repeatable.",
)
@click.option(
    "--no-sampling",
    is_flag=True,
    help="Poll the cluster only while a page is open; charts then have no history.",
)
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Store chart data in FILE, so that it survives a restart.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="Exit with the parent process.")
@entry_options
@servers.logging_options
def command(
    *,
    namesrv: str,
    host: str,
    port: int,
    allow_actions: bool,
    password_file: Path | None,
    names: tuple[str, ...],
    events_topic: str | None,
    clusters: tuple[str, ...],
    no_sampling: bool,
    history: Path | None,
    with_parent: bool,
    **given: Any,
) -> None:
    """Show a cluster, PocketMQ's or Apache's, in the browser.

    Prints `ready http://HOST:PORT` once it serves; everything else goes to stderr. To serve other
    machines it needs --host and a password. SIGTERM or Ctrl-C stops it.
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
        sampling=not no_sampling,
        history=history,
        events_topic=events_topic,
    )
    log = set_up_logging(servers.log_settings(given))
    if with_parent:
        die_with_parent()
    lifeline = 0 if with_parent else None
    addresses = {"": namesrv, **_others(clusters)}
    loops.run(_serve(addresses, Entry.taken_from(given), settings, log, lifeline), "asyncio")


def _others(clusters: tuple[str, ...]) -> dict[str, str]:
    """Return the name servers of further clusters by name."""
    found: dict[str, str] = {}
    for text in clusters:
        name, equals, addresses = text.partition("=")
        if not (equals and addresses and _NAME.fullmatch(name)) or name in found:
            raise click.BadParameter(
                f"{text!r} is not NAME=HOST:PORT with a new name of letters, digits, _ and -",
                param_hint="--cluster",
            )
        found[name] = addresses
    return found


def _password(file: Path | None) -> str | None:
    """Read the password: the first line of a file, else from the environment."""
    if file is None:
        return os.environ.get(PASSWORD_VARIABLE) or None
    try:
        with file.open(encoding="utf-8") as lines:
            return lines.read(_LONGEST_FILE).splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it holds no password"
        raise CannotStart("the dashboard", f"{file}: {reason}") from problem


async def _serve(
    addresses: dict[str, str],
    entry: Entry,
    settings: "DashboardSettings",
    log: StderrLines,
    lifeline: int | None,
) -> None:
    from pocketmq.admin.admin import Admin
    from pocketmq.dashboard.server import Dashboard
    from pocketmq.embedded.stopping import serve_until_asked

    admins = {
        name: Admin(each, credentials=entry.credentials, tls=entry.tls)
        for name, each in addresses.items()
    }
    dashboard = Dashboard(admins.pop(""), settings, admins)

    # Until it serves, a problem is reported once: as the error the command exits with.
    client_log = logging.getLogger("pocketmq.client")
    client_log.setLevel(logging.ERROR)

    def announce(address: str) -> None:
        client_log.setLevel(logging.NOTSET)
        log.started()
        with suppress(OSError):
            sys.stdout.write(f"ready {address}\n")
            sys.stdout.flush()

    await serve_until_asked(
        dashboard.start,
        dashboard.stop,
        announce=announce,
        force=servers.exit_at_once,
        lifeline=lifeline,
    )


def check_installed() -> None:
    """Raise `CannotStart` if the packages a dashboard needs are not installed."""
    try:
        found = find_spec("nicegui") is not None
    except ValueError:  # what Python raises for a module that was removed from sys.modules
        found = False
    if not found:
        reason = "packages are missing: pip install 'pocketmq[dashboard]'"
        raise CannotStart("the dashboard", reason)
