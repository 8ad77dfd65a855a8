"""What the commands that run servers have in common: options, log, the line that says ready."""

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pocketmq.cli.secret_input import warn_of_argument
from pocketmq.embedded.early_stop import FORCED
from pocketmq.embedded.server_logging import LEVELS, LogSettings, StderrLines
from pocketmq.net import TlsMode

logger = logging.getLogger("pocketmq.cluster")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PORT = click.IntRange(0, 65535)


def listening_options(port: int | None, what: str) -> Decorator:
    """Add --host and --port."""
    usual = "" if port is None else f", usually {port}"

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--port",
            type=PORT,
            default=port,
            help=f"Port of {what}; 0 takes any free one{usual}.",
        )(command)
        return click.option(
            "--host",
            default=None if port is None else "127.0.0.1",
            help="Address to listen on; 0.0.0.0 is every one of this machine, usually 127.0.0.1.",
        )(command)

    return add


def logging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --log-level and --log-json."""
    command = click.option("--log-json", is_flag=True, help="One JSON object a line on stderr.")(
        command
    )
    return click.option(
        "--log-level", type=click.Choice(LEVELS), default="info", help="Least level to show."
    )(command)


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --data and --memory."""
    command = click.option(
        "--memory", is_flag=True, help="Keep everything in memory; the default."
    )(command)
    return click.option(
        "--data",
        metavar="DIR",
        help="Directory to keep everything in, from one start to the next.",
    )(command)


def settings_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --set."""
    return click.option(
        "--set",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting by RocketMQ's name, such as autoCreateTopicEnable=false; repeatable.",
    )(command)


def tls_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --tls-cert, --tls-key and --tls-mode."""
    command = click.option(
        "--tls-mode",
        type=click.Choice([str(mode) for mode in TlsMode]),
        help="Whether TLS may or has to be spoken; permissive if there is a certificate.",
    )(command)
    command = click.option(
        "--tls-key", metavar="FILE", help="Key of the certificate, PEM; if not in the same file."
    )(command)
    return click.option("--tls-cert", metavar="FILE", help="Certificate to speak TLS with, PEM.")(
        command
    )


def metrics_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --metrics-port."""
    return click.option(
        "--metrics-port",
        type=PORT,
        help="Port for Prometheus on 127.0.0.1, further brokers on the next; 0 takes any free one.",
    )(command)


def chosen_metrics(port: int | None) -> dict[str, str]:
    """Give the settings that --metrics-port stands for."""
    if port is None:
        return {}
    return {"metricsExporterType": "PROM", "metricsPromExporterPort": str(port)}


def chosen_tls(cert: str | None, key: str | None, mode: str | None) -> dict[str, str]:
    """Give the settings that TLS options stand for."""
    given = {"tls.server.certPath": cert, "tls.server.keyPath": key, "tls.server.mode": mode}
    return {name: value for name, value in given.items() if value is not None}


def read_pairs(pairs: tuple[str, ...]) -> dict[str, str]:
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


def chosen_data(data: str | None, memory: bool = False) -> Path | None:
    """Decide between --data and --memory."""
    if data is None:
        return None
    if memory:
        raise click.UsageError("--data and --memory contradict each other; give one of them")
    if not data.strip():  # a path of nothing would be the current directory
        raise click.UsageError("--data takes a directory, not an empty text")
    return Path(data)


def chosen_log(level: str, as_json: bool) -> LogSettings:
    """Give the log options as a value."""
    return LogSettings(level=level, as_json=as_json)


def say_ready(line: str, log: StderrLines, *, kept: bool) -> None:
    """Print the one line on stdout that scripts wait for; a closed stdout is no reason to stop."""
    log.started()
    if not kept:
        logger.info("messages are in memory and end with this process; --data DIR keeps them")
    with suppress(OSError):
        sys.stdout.write(f"ready {line}\n")
        sys.stdout.flush()


def end_at_once() -> None:
    """Leave without cleaning up, after a second signal."""
    sys.stderr.flush()
    os._exit(FORCED)
