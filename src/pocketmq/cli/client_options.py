"""What the commands that are clients have in common."""

import logging
import signal
from collections.abc import Callable
from typing import Any, NoReturn

import click


def client_options(group: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add -n, -t and -g."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "-g", "--group", default=group, show_default=True, help="Group to be a member of."
        )(command)
        command = click.option("-t", "--topic", required=True, help="Topic.")(command)
        return click.option(
            "-n",
            "--namesrv",
            metavar="HOST:PORT",
            default="",
            help="Name server, several joined by ';'; usually the environment's NAMESRV_ADDR.",
        )(command)

    return add


def prepare_client() -> None:
    """Have SIGTERM end the command as Ctrl-C does; what goes wrong is told once, as an error."""
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
