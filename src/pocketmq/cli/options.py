"""Options and set-up that several commands share."""

from collections.abc import Callable
from math import isfinite
from typing import Any, NoReturn

import click

Decorator = Callable[[Any], Any]


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


def namesrv_option(*, what: str = "Name servers") -> Decorator:
    """Return the option -n; the client reads NAMESRV_ADDR itself if it is not given."""
    return click.option(
        "-n",
        "--namesrv",
        metavar="HOST:PORT",
        default="",
        help=f"{what}, separated by ';'.  [default: $NAMESRV_ADDR]",
    )


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


def client_options(group: str) -> Decorator:
    """Return the options -n, -t and -g of a command that is a client."""
    return all_of(
        namesrv_option(),
        click.option("-t", "--topic", required=True, help="Topic."),
        click.option("-g", "--group", default=group, show_default=True, help="Group to join."),
    )


def prepare_client() -> None:
    """Make SIGTERM stop the command as Ctrl-C does; an error is printed once, not logged too."""
    import logging
    import signal

    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
