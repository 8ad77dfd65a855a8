"""What the commands that run servers share: options, the log, the `ready` line."""

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec

from pocketmq.cli.commands import Decorator, all_of
from pocketmq.cli.secret_input import warn_of_argument
from pocketmq.embedded.own_process import FORCED, remember_stop_signals
from pocketmq.embedded.server_logging import LEVELS, LogSettings, StderrLines
from pocketmq.host import check_for_servers
from pocketmq.net import TlsMode

logger = logging.getLogger("pocketmq.cluster")

PORT = click.IntRange(0, 65535)
ADVERTISE = click.option(
    "--advertise",
    metavar="HOST",
    default="",
    help="Host name clients should connect to.  [default: --host]",
)


class ServerRun(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the options that all servers have."""

    data: Path | None
    chosen: bool
    """Whether it was said where messages are kept, on disk or in memory."""
    settings: dict[str, str]
    """Settings by RocketMQ's names, from --set and the options that stand for some."""
    log: LogSettings


def listening_options(port: int, *, settable: bool = False) -> Decorator:
    """Return --host and --port; `settable` if a config file may have them, so that they are None.

    click shows the default itself where it is the option's.
    """
    shown = "  [default: {}]" if settable else ""
    return all_of(
        click.option(
            "--host",
            default=None if settable else "127.0.0.1",
            show_default=True,
            help=f"Address to listen on; 0.0.0.0 is every interface.{shown.format('127.0.0.1')}",
        ),
        click.option(
            "--port",
            type=PORT,
            metavar="PORT",
            default=None if settable else port,
            show_default=True,
            help=f"Port to listen on; 0 takes any free one.{shown.format(port)}",
        ),
    )


logging_options = all_of(
    click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="Lowest level to log.",
    ),
    click.option("--log-json", is_flag=True, help="Log JSON objects, one per line."),
)

_BROKER_DATA = all_of(
    click.option("--data", metavar="DIR", help="Directory to keep messages and settings in."),
    click.option("--memory", is_flag=True, help="Keep everything in memory (the default)."),
)
_NAME_SERVER_DATA = click.option(
    "--data",
    metavar="DIR",
    help="Directory for key values and changed settings; without it they are in memory.",
)
_TLS = all_of(
    click.option(
        "--tls-cert", metavar="FILE", help="Server certificate, PEM.  [default: a self-signed one]"
    ),
    click.option("--tls-key", metavar="FILE", help="Its key, PEM, if not in the same file."),
    click.option(
        "--tls-mode",
        type=click.Choice([str(mode) for mode in TlsMode]),
        help="Whether clients may or must use TLS.  [default: permissive]",
    ),
)
_METRICS = click.option(
    "--metrics-port",
    type=PORT,
    metavar="PORT",
    help="Prometheus port on 127.0.0.1; further brokers use the next ports; 0 picks a free one.",
)
_OTEL = click.option(
    "--otel",
    is_flag=True,
    help="Export metrics with OpenTelemetry, as the OTEL_* environment variables say.",
)
_SET = click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting by RocketMQ's name, such as autoCreateTopicEnable=false; repeatable.",
)


def server_options(*, brokers: bool) -> Decorator:
    """Add the options of a server to a command, which gets their values as `run`.

    A signal that comes from here on stops the server, however far it has started.
    """
    parts = (_BROKER_DATA, _TLS, _METRICS, _OTEL) if brokers else (_NAME_SERVER_DATA, _TLS)
    options = all_of(*parts, _SET, logging_options)

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def gathered(**given: Any) -> None:
            check_for_servers("a server")
            remember_stop_signals()
            data, memory = given.pop("data"), given.pop("memory", False)
            run = ServerRun(
                data=_data(data, memory=memory),
                chosen=memory or data is not None,
                settings=_settings(given),
                log=log_settings(given),
            )
            command(run=run, **given)

        found: Callable[..., None] = options(gathered)
        return found

    return add


def log_settings(given: dict[str, Any]) -> LogSettings:
    """Take the logging options out of all that were given."""
    return LogSettings(level=given.pop("log_level"), as_json=given.pop("log_json"))


def _settings(given: dict[str, Any]) -> dict[str, str]:
    """Take the options out that stand for settings. Raises `click.UsageError`."""
    settings = _pairs(given.pop("pairs"))
    for option, key in (
        ("tls_cert", "tls.server.certPath"),
        ("tls_key", "tls.server.keyPath"),
        ("tls_mode", "tls.server.mode"),
    ):
        value = given.pop(option)
        if value is not None:
            settings[key] = value
    port = given.pop("metrics_port", None)
    if port is not None:
        settings |= {"metricsExporterType": "PROM", "metricsPromExporterPort": str(port)}
    if given.pop("otel", False):
        if port is not None:
            raise click.UsageError("--otel and --metrics-port exclude each other")
        settings["metricsExporterType"] = "OTEL"
    return settings


def _pairs(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read the values of --set."""
    if not pairs:
        return {}
    from pocketmq.broker.config import SECRET_SETTINGS

    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--set takes KEY=VALUE, not {pair!r}")
        settings[key.strip()] = value.strip()
        if key.strip() in SECRET_SETTINGS and value.strip():
            warn_of_argument(f"--set {key.strip()}", "a file, --config FILE")
    return settings


def _data(data: str | None, *, memory: bool) -> Path | None:
    """Decide between --data and --memory."""
    if data is None:
        return None
    if memory:
        raise click.UsageError("--data and --memory contradict each other; give one of them")
    if not data.strip():  # an empty path would be the current directory
        raise click.UsageError("--data takes a directory, not an empty string")
    return Path(data)


def announce_ready(line: str, log: StderrLines, *, chosen: bool) -> None:
    """Print the one line on stdout that scripts wait for; a closed stdout is ignored."""
    log.started()
    if not chosen:
        logger.info("messages are kept in memory and lost at exit; --data DIR keeps them")
    with suppress(OSError):
        sys.stdout.write(f"ready {line}\n")
        sys.stdout.flush()


def exit_at_once() -> None:
    """Exit without cleaning up, after a second signal."""
    sys.stderr.flush()
    os._exit(FORCED)
