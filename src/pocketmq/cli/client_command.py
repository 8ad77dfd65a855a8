"""What commands share that are clients themselves: `produce`, `consume`, `bench`."""

from typing import NoReturn

import click

from pocketmq.cli.commands import Decorator, all_of, namesrv_option
from pocketmq.cli.completion import group_names, topic_names


def client_options(group: str) -> Decorator:
    """Return the options -n, -t and -g of a command that is a client."""
    return all_of(
        namesrv_option(),
        click.option("-t", "--topic", required=True, help="Topic.", shell_complete=topic_names),
        click.option(
            "-g",
            "--group",
            default=group,
            show_default=True,
            help="Group to join.",
            shell_complete=group_names,
        ),
    )


def prepare_client() -> None:
    """Make SIGTERM stop the command as Ctrl-C does; an error is printed once, not logged too."""
    import logging
    import signal

    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
