"""Options that several admin commands share, by mqadmin's letters and names."""

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from pocketmq.cli.commands import FiniteRange
from pocketmq.cli.completion import group_names, topic_names
from pocketmq.errors import BodyMalformed
from pocketmq.protocol import decode_body

_JAVA_TIME = "%Y-%m-%d#%H:%M:%S:%f"
T = TypeVar("T")


def java_bool(value: str | bool) -> bool:
    """Read `true` or `false`; other words, which Java takes for false, are refused."""
    word = str(value).strip().lower()
    if word not in {"true", "false"}:
        raise click.BadParameter(f"{value!r} is neither true nor false")
    return word == "true"


def read_time(value: str | int) -> int:
    """Read a time: milliseconds since 1970, `yyyy-MM-dd#HH:mm:ss:SSS`, ISO 8601 or `now`."""
    text = str(value).strip()
    if text == "now":
        return int(time.time() * 1000)
    if text.removeprefix("-").isdecimal():
        return int(text)
    try:
        if "#" in text:
            return int(datetime.strptime(text, _JAVA_TIME).timestamp() * 1000)  # noqa: DTZ007
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(
            f"{value!r} is not a time; give milliseconds, 2026-01-31#12:00:00:000 or now"
        ) from None


def text(*names: str, help: str, required: bool = False, completed: Any = None) -> Any:  # noqa: A002 - click's word
    """Return an option that takes text; `completed` returns what a shell offers."""
    return click.option(*names, help=help, required=required, shell_complete=completed)


def truth(*names: str, help: str, default: bool) -> Any:  # noqa: A002 - click's word
    """Return an option that takes `true` or `false`."""
    shown = str(default).lower()
    return click.option(
        *names, type=java_bool, metavar="true|false", default=shown, show_default=True, help=help
    )


def number(
    *names: str,
    help: str,  # noqa: A002 - click's word
    default: int | None = None,
    least: int = 0,
    required: bool = False,
) -> Any:
    """Return an option that takes a whole number."""
    kind = click.IntRange(least)
    shown = default is not None
    return click.option(
        *names,
        type=kind,
        metavar="N",
        default=default,
        show_default=shown,
        required=required,
        help=help,
    )


def at_time(
    *names: str,
    help: str,  # noqa: A002 - click's word
    required: bool = False,
    kind: Callable[[str | int], int] = read_time,
) -> Any:
    """Return an option that takes a time, read by `kind`."""
    return click.option(*names, type=kind, metavar="TIME", help=help, required=required)


def flag(*names: str, help: str) -> Any:  # noqa: A002 - click's word
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help)


INTERVAL = click.option(
    "-i", "--interval", type=FiniteRange(0.05), metavar="SECONDS", help="Same as --watch."
)
TOPIC = text("-t", "--topic", help="Topic.", required=True, completed=topic_names)
GROUP = text(
    "-g",
    "--group",
    "--groupName",
    "--consumerGroup",
    "group",
    help="Group.",
    required=True,
    completed=group_names,
)
CLUSTER = text("-c", "--clusterName", "--cluster", "cluster", help="Cluster.")
BROKER = text("-b", "--brokerAddr", "address", help="Address of a broker.")
BROKER_NAME = text("-b", "--brokerName", "broker", help="Name of the broker.", required=True)
QUEUE_ID = number("-i", "--queueId", "queue_id", help="Queue id.", required=True)
BEGIN = at_time("-b", "--beginTimestamp", "begin", help="Only messages stored after this time.")
END = at_time("-e", "--endTimestamp", "end", help="Only messages stored before this time.")
IGNORED = "Ignored; for compatibility with mqadmin."
"""The help of options that mqadmin has and that mean nothing here."""
CONFIGS_FILE = click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="JSON list of settings, by RocketMQ's names.",
)


def one_target(cluster: str | None, address: str | None) -> None:
    """Raise `click.UsageError` unless exactly one of a cluster and a broker is given."""
    if (cluster is None) is (address is None):
        raise click.UsageError("give either a cluster with -c, or a broker with -b")


def names_in(given: str | None) -> list[str]:
    """Split a list at its commas; empty names are dropped."""
    return [name.strip() for name in (given or "").split(",") if name.strip()]


def read_configs(file: Path, kind: type[T]) -> list[T]:
    """Read a JSON list of settings; raises `click.UsageError`."""
    try:
        return decode_body(file.read_bytes(), list[kind])  # type: ignore[valid-type]
    except BodyMalformed as error:
        raise click.UsageError(f"{file}: {error.reason}") from None
