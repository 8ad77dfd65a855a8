"""`pocketmq produce`: send lines of stdin as messages."""

import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import click

from pocketmq.cli.client_command import client_options, prepare_client
from pocketmq.cli.commands import HELP, FiniteRange
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.cli.lines import message_of, read_line, receipt_line
from pocketmq.cli.progress import ProgressBar
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import Message

if TYPE_CHECKING:
    from pocketmq.model.message import SendReceipt


@click.command("produce", context_settings=HELP)
@client_options("pocketmq_produce")
@click.option("--tag", help="Tag of the messages.")
@click.option("--key", "keys", multiple=True, help="Key to find the messages by; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Read JSON objects, one per line.")
@click.option("--count", type=click.IntRange(1), metavar="N", help="Stop after N messages.")
@click.option(
    "--timeout",
    type=FiniteRange(0.001),
    metavar="SECONDS",
    help="Timeout of each send.  [default: 3]",
)
@click.option("--receipts", is_flag=True, help="Print where each message is stored, as JSON.")
@entry_options
def command(
    *,
    namesrv: str,
    topic: str,
    group: str,
    tag: str | None,
    keys: tuple[str, ...],
    as_json: bool,
    count: int | None,
    timeout: float | None,
    receipts: bool,
    **given: Any,
) -> None:
    """Send each line of stdin as a message.

    With --json a line is an object with `body` (or `body_base64`), and optionally `tag`, `keys`,
    `properties`, `priority`, `ordering_key`: the output of `pocketmq consume --json` can be sent
    again.

    Exits with 0 when every message is stored, with 1 at the first that is not.
    """
    from pocketmq.blocking.producer import Producer

    prepare_client()
    waiting: deque[tuple[int, Future[SendReceipt]]] = deque()

    def settle(*, until_done: bool) -> None:
        while waiting and (until_done or waiting[0][1].done()):
            number, future = waiting.popleft()
            try:
                receipt = future.result()
            except MQError as error:
                raise click.ClickException(f"line {number}: {error}") from error
            if receipts:
                sys.stdout.buffer.write(receipt_line(receipt))

    entry = Entry.taken_from(given)
    with (
        Producer(namesrv, group=group, credentials=entry.credentials, tls=entry.tls) as producer,
        ProgressBar("sending", "messages") as bar,
    ):
        for number, message, key in _messages(topic, tag, keys, as_json=as_json):
            try:
                future = producer.submit(message, ordering_key=key, timeout=timeout)
            except InvalidInput as error:  # such as a body that is empty or too large
                raise InvalidInput(f"line {number}: {error}") from None
            waiting.append((number, future))
            settle(until_done=False)
            bar.update(number, count or 0)
            if number == count:
                break
        settle(until_done=True)


def _messages(
    topic: str, tag: str | None, keys: tuple[str, ...], *, as_json: bool
) -> Iterator[tuple[int, Message, str | None]]:
    """Yield the number of each line of stdin, its message and its ordering key."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            if as_json:
                read = read_line(text)
                yield number, message_of(read, topic, tag, keys), read.ordering_key
            else:
                yield number, Message(topic, text, tag=tag, keys=keys), None
        except InvalidInput as error:
            raise InvalidInput(f"line {number}: {error}") from None
