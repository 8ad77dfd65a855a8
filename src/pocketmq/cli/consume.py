"""`pocketmq consume`: messages become lines of stdout."""

import logging
import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pocketmq.cli.entry import Entry, entry_options
from pocketmq.cli.lines import as_json as json_line
from pocketmq.cli.lines import as_text
from pocketmq.cli.options import FiniteRange, client_options, prepare_client
from pocketmq.cli.output import printable
from pocketmq.client.consumer.handlers import RetryLater
from pocketmq.model.kinds import ConsumeFromWhere
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.received import ReceivedMessage

if TYPE_CHECKING:
    from pocketmq.blocking.pull_consumer import PullConsumer

_COMMIT_INTERVAL = 1.0
_LAST_LINE = 5.0
"""Seconds for a line that is being printed."""
_LOOK = 0.5
"""Seconds between looks at the clock while nothing comes."""


class ConsumeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be consumed, and until when."""

    namesrv: str
    entry: Entry
    group: str
    topic: str
    tag: str
    key: str | None
    consume_from: ConsumeFromWhere
    start_at: float | None
    timeout: float | None

    @property
    def patience(self) -> float:
        """Seconds to wait before looking at the clock."""
        return _LOOK if self.timeout is None else min(_LOOK, self.timeout)


def _start(
    _context: click.Context, _option: click.Parameter, text: str
) -> tuple[ConsumeFromWhere, float | None]:
    """Read `first`, `last` or a time."""
    if text == "first":
        return ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, None
    if text == "last":
        return ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, None
    try:
        moment = datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise click.UsageError(
            f"--from takes first, last or a time such as 2026-01-31T12:00, not {text!r}"
        ) from None
    return ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, moment


class Complaints(logging.Handler):
    """What the client complains of, such as a user that brokers refuse.

    A command that waits for ever tells each at once, one that ends tells the last with its end.
    """

    def __init__(self, *, at_once: bool) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self._at_once = at_once
        self._waiting = False
        self._told = {""}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it, and tell it if it is new."""
        self.last = printable(record.getMessage())
        self._tell()

    def wait(self) -> None:
        """From now on nothing else will tell what is wrong."""
        self._waiting = self._at_once
        self._tell()

    def end(self) -> None:
        """Hear no more."""
        logging.getLogger("pocketmq").removeHandler(self)

    def _tell(self) -> None:
        if self._waiting and self.last not in self._told:
            self._told.add(self.last)
            click.echo(f"pocketmq: {self.last}", err=True)


class Printing:
    """Prints messages until there were enough, and remembers when the last one came."""

    def __init__(self, *, as_json: bool, count: int | None, complaints: Complaints) -> None:
        self.printed = 0
        self.last = time.monotonic()
        self.over = threading.Event()
        self.failure: OSError | None = None
        self._line = json_line if as_json else as_text
        self._count = count
        self._complaints = complaints

    def __call__(self, message: ReceivedMessage) -> bool:
        """Print a message; False if it is one too many, or cannot be printed."""
        if self.over.is_set():
            return False
        try:
            sys.stdout.buffer.write(self._line(message))
            sys.stdout.buffer.flush()
        except OSError as error:  # the reader has gone, or the disk is full
            self.failure = error
            self.over.set()
            return False
        self.printed += 1
        self.last = time.monotonic()
        if self.printed == self._count:
            self.over.set()
        return True

    def begin(self) -> None:
        """Have signals end it between two messages from now on, not in the middle of one."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.over.set())
        self._complaints.wait()
        self.last = time.monotonic()

    def end(self) -> None:
        """Print no more."""
        self.over.set()
        self._complaints.end()

    def over_or_silent(self, timeout: float | None) -> bool:
        """Whether there were enough messages, or none for so long."""
        if self.over.is_set():
            return True
        return timeout is not None and time.monotonic() - self.last >= timeout

    def check(self) -> None:
        """Raise what kept it from printing, or that there were too few messages, and why."""
        if self.failure is not None:
            raise self.failure
        if self._count is not None and self.printed < self._count:
            why = f" ({self._complaints.last})" if self._complaints.last else ""
            raise click.ClickException(f"only {self.printed} of {self._count} messages came{why}")


@click.command("consume", context_settings={"help_option_names": ["-h", "--help"]})
@client_options("pocketmq_consume")
@click.option("--tag", default="*", help="Tags wanted, such as 'paid || refunded'; usually all.")
@click.option("--key", help="Print only messages with this key.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON objects instead of bodies.")
@click.option(
    "--from",
    "start",
    callback=_start,
    default="last",
    metavar="START",
    help="Where a group begins that is new: first, last (usual) or a time.",
)
@click.option("--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option(
    "--timeout", type=FiniteRange(0.0), help="Stop after so many seconds without a message."
)
@click.option("--pull", is_flag=True, help="Poll, instead of having messages pushed.")
@entry_options
def command(
    *,
    namesrv: str,
    topic: str,
    group: str,
    tag: str,
    key: str | None,
    as_json: bool,
    start: tuple[ConsumeFromWhere, float | None],
    count: int | None,
    timeout: float | None,
    pull: bool,
    **given: Any,
) -> None:
    """Print each message of a topic as a line, as a member of a group.

    Without --json, what would break a line is escaped. A message counts as consumed once it is
    printed. Ctrl-C or SIGTERM ends it with 0; with --count it ends with 1 if there were fewer.
    """
    prepare_client()
    complaints = Complaints(at_once=timeout is None)
    logging.getLogger("pocketmq").addHandler(complaints)
    printing = Printing(as_json=as_json, count=count, complaints=complaints)
    wanted = ConsumeSettings(
        namesrv=namesrv,
        entry=Entry.taken_from(given),
        group=group,
        topic=topic,
        tag=tag,
        key=key,
        consume_from=start[0],
        start_at=start[1],
        timeout=timeout,
    )
    with suppress(KeyboardInterrupt):
        (_pull if pull else _push)(wanted, printing)
    printing.check()


def _pull(wanted: ConsumeSettings, printing: Printing) -> None:
    from pocketmq.blocking.pull_consumer import PullConsumer

    reached: dict[MessageQueue, int] = {}
    consumer = PullConsumer(
        wanted.namesrv,
        group=wanted.group,
        credentials=wanted.entry.credentials,
        tls=wanted.entry.tls,
        consume_from=wanted.consume_from,
        start_at=wanted.start_at,
        auto_commit=False,
    ).subscribe(wanted.topic, wanted.tag)
    consumer.start()
    try:
        printing.begin()
        committed = printing.last
        while not printing.over_or_silent(wanted.timeout):
            for message in consumer.poll(wanted.patience):
                if _is_wanted(message, wanted) and not printing(message):
                    break
                queue = MessageQueue(wanted.topic, message.broker_name, message.queue_id)
                reached[queue] = message.queue_offset + 1
            if reached and time.monotonic() - committed > _COMMIT_INTERVAL:
                _commit(consumer, reached)
                committed = time.monotonic()
    finally:
        printing.end()
        try:
            _commit(consumer, reached)
        finally:
            consumer.close(commit=False)


def _commit(consumer: "PullConsumer", reached: dict[MessageQueue, int]) -> None:
    """Store how far the group has come in the queues that are still ours."""
    ours = {queue for queues in consumer.assignment().values() for queue in queues}
    offsets = {queue: offset for queue, offset in reached.items() if queue in ours}
    reached.clear()
    if offsets:
        consumer.commit(offsets)


def _push(wanted: ConsumeSettings, printing: Printing) -> None:
    from pocketmq.blocking.push_consumer import PushConsumer

    refused, closed = threading.Event(), threading.Event()

    def handle(message: ReceivedMessage) -> None:
        if _is_wanted(message, wanted) and not printing(message):
            refused.set()
            closed.wait()  # not ours any more: it stays with the group, as if never handed out
            raise RetryLater

    consumer = PushConsumer(
        wanted.namesrv,
        group=wanted.group,
        credentials=wanted.entry.credentials,
        tls=wanted.entry.tls,
        consume_from=wanted.consume_from,
        start_at=wanted.start_at,
        threads=1,
    )
    consumer.subscribe(wanted.topic, wanted.tag, handle)
    consumer.start()
    try:
        printing.begin()
        while not printing.over_or_silent(wanted.timeout):
            printing.over.wait(wanted.patience)
    finally:
        printing.end()
        try:
            consumer.close(wait=0.0 if refused.is_set() else _LAST_LINE)
        finally:
            closed.set()


def _is_wanted(message: ReceivedMessage, wanted: ConsumeSettings) -> bool:
    return wanted.key is None or wanted.key in message.keys
