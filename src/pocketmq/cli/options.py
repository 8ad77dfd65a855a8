"""Options and set-up that several commands share."""

import os
from collections.abc import Callable
from math import isfinite
from typing import Any

import click

from pocketmq.errors import MQError, NameServersUnreachable

Decorator = Callable[[Any], Any]
ENVIRONMENT = "NAMESRV_ADDR"  # as the client has it, which takes long to import
LOCAL = "127.0.0.1:9876"
"""Where `pocketmq up` listens."""
_ASSUMED = "pocketmq.cli.options.assumed"


class FiniteRange(click.FloatRange):
    """A range of floats without `inf`, and without `nan`, which no bound keeps out."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number, or fail as click's types do."""
        found = float(super().convert(value, param, ctx))
        if not isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


def namesrv_option(name: str = "--namesrv", *, what: str = "Name servers") -> Decorator:
    """Return the option -n, the parameter `namesrv`; without it, NAMESRV_ADDR or the local one."""
    return click.option(
        "-n",
        name,
        "namesrv",
        metavar="HOST:PORT",
        default="",
        callback=_or_local,
        help=f"{what}, separated by ';'.  [default: ${ENVIRONMENT} or {LOCAL}]",
    )


def _or_local(context: click.Context, _option: click.Parameter, given: str) -> str:
    known = given or os.environ.get(ENVIRONMENT, "")
    if known.strip(" ;"):
        return known
    context.meta[_ASSUMED] = True
    return LOCAL


def explained(context: click.Context, error: MQError) -> str:
    """Return an error's text, with a hint if no server answers where none was named."""
    if isinstance(error, NameServersUnreachable) and context.meta.get(_ASSUMED):
        return f"{error}; start a cluster with 'pocketmq up', or name one with -n or {ENVIRONMENT}"
    return str(error)


def json_option(text: str = "Print one JSON document.") -> Decorator:
    """Return the option --json, the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def all_of(*options: Decorator) -> Decorator:
    """Join options to one decorator; they are listed in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add
