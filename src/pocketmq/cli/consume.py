"""`pocketmq consume`: print messages as lines of stdout."""

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

from pocketmq.cli.client_command import client_options, prepare_client
from pocketmq.cli.commands import HELP, FiniteRange
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.cli.lines import as_json as json_line
from pocketmq.cli.lines import as_text
from pocketmq.cli.output import printable
from pocketmq.cli.progress import ProgressBar
from pocketmq.client.options import ClientOptions
from pocketmq.client.push.handlers import RetryLater
from pocketmq.errors import RouteNotFound
from pocketmq.model import ConsumeFromWhere, MessageQueue
from pocketmq.model.names import check_topic
from pocketmq.protocol import ReceivedMessage

if TYPE_CHECKING:
    from pocketmq.blocking.pull_consumer import PullConsumer

_COMMIT_INTERVAL = 1.0
_LAST_LINE = 5.0
"""Seconds to finish the line that is being printed."""
_RETURN = 0.2
"""Seconds for the handler of that line to return, so that its message counts as handled."""
_POLL = 0.5
"""Seconds between checks of the timeout while no message arrives."""


class ConsumeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to consume, and until when."""

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
        """Seconds to wait before the timeout is checked again."""
        return _POLL if self.timeout is None else min(_POLL, self.timeout)


def _start(
    _context: click.Context, _option: click.Parameter, text: str
) -> tuple[ConsumeFromWhere, float | None]:
    """Read `first`, `last` or a time."""
    if text == "first":
        return ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, None
    if text == "last":
        return ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, None
    try:
        time_ = datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise click.UsageError(
            f"--from takes first, last or a time such as 2026-01-31T12:00, not {text!r}"
        ) from None
    return ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, time_


class TopicMissing(click.ClickException):
    """The topic to consume does not exist; names the one that is most similar."""

    exit_code = 3  # as `pocketmq admin` has it for what it does not find

    def __init__(self, topic: str, known: list[str]) -> None:
        from difflib import get_close_matches

        nearest = get_close_matches(topic, known, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else "see 'pocketmq admin topicList'"
        super().__init__(f"topic {topic!r} does not exist; {hint}")


class ClientWarnings(logging.Handler):
    """The client's warnings, such as a user that brokers refuse.

    A command without a timeout prints each immediately; one with a timeout adds the last one to its
    error.
    """

    def __init__(self, *, at_once: bool) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self._at_once = at_once
        self._waiting = False
        self._printed = {""}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning, and print it if it is new."""
        self.last = printable(record.getMessage())
        self._print()

    def wait(self) -> None:
        """Print warnings from now on: the command has started, so no error will report them."""
        self._waiting = self._at_once
        self._print()

    def end(self) -> None:
        """Stop listening."""
        logging.getLogger("pocketmq").removeHandler(self)

    def _print(self) -> None:
        if self._waiting and self.last not in self._printed:
            self._printed.add(self.last)
            click.echo(f"pocketmq: {self.last}", err=True)


class MessagePrinter:
    """Prints messages up to a count, and keeps the time of the last one."""

    def __init__(self, *, as_json: bool, count: int | None, warnings: ClientWarnings) -> None:
        self.printed = 0
        self.last = time.monotonic()
        self.over = threading.Event()
        self.failure: OSError | None = None
        self._line = json_line if as_json else as_text
        self._count = count
        self._warnings = warnings
        self.bar = ProgressBar("received", "messages", wanted=not sys.stdout.isatty())

    def __call__(self, message: ReceivedMessage) -> bool:
        """Print a message; return False if the count was reached or it cannot be printed."""
        if self.over.is_set():
            return False
        try:
            sys.stdout.buffer.write(self._line(message))
            sys.stdout.buffer.flush()
        except OSError as error:  # the reader has closed the pipe, or the disk is full
            self.failure = error
            self.over.set()
            return False
        self.printed += 1
        self.bar.update(self.printed, self._count or 0)
        self.last = time.monotonic()
        if self.printed == self._count:
            self.over.set()
        return True

    def begin(self) -> None:
        """Let signals stop it between two messages from now on, not within one."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.over.set())
        self._warnings.wait()
        self.last = time.monotonic()

    def end(self) -> None:
        """Stop printing."""
        self.over.set()
        self._warnings.end()

    def over_or_silent(self, timeout: float | None) -> bool:
        """Return whether the count was reached, or no message arrived for `timeout` seconds."""
        if self.over.is_set():
            return True
        return timeout is not None and time.monotonic() - self.last >= timeout

    def check(self) -> None:
        """Raise the error of printing, or that there were too few messages, and why."""
        if self.failure is not None:
            raise self.failure
        if self._count is not None and self.printed < self._count:
            why = f" ({self._warnings.last})" if self._warnings.last else ""
            raise click.ClickException(
                f"only {self.printed} of {self._count} messages arrived{why}"
            )


@click.command("consume", context_settings=HELP)
@client_options("pocketmq_consume")
@click.option(
    "--tag", default="*", show_default=True, help="Tags to print, such as 'paid || refunded'."
)
@click.option("--key", help="Print only messages with this key.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON objects instead of bodies.")
@click.option(
    "--from",
    "start",
    callback=_start,
    default="last",
    show_default=True,
    metavar="first|last|TIME",
    help="Where a new group starts.",
)
@click.option("--count", type=click.IntRange(1), metavar="N", help="Stop after N messages.")
@click.option(
    "--timeout",
    type=FiniteRange(0.0),
    metavar="SECONDS",
    help="Stop after SECONDS without a message.",
)
@click.option("--pull", is_flag=True, help="Use a pull consumer instead of a push consumer.")
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

    Without --json, control characters are escaped. A message counts as consumed once it is
    printed. Ctrl-C or SIGTERM exits with 0; with --count it exits with 1 if there were fewer, and
    with 3 if there is no such topic.
    """
    prepare_client()
    warnings = ClientWarnings(at_once=timeout is None)
    logging.getLogger("pocketmq").addHandler(warnings)
    printing = MessagePrinter(as_json=as_json, count=count, warnings=warnings)
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
    with suppress(KeyboardInterrupt), printing.bar:
        _check_topic(wanted)
        (_pull if pull else _push)(wanted, printing)
    printing.check()


def _check_topic(wanted: ConsumeSettings) -> None:
    """Raise `TopicMissing` if no broker has the topic: a consumer would wait for it silently."""
    from pocketmq.blocking.record_reader import RecordReader

    check_topic(wanted.topic)
    options = ClientOptions(
        name_servers=wanted.namesrv, credentials=wanted.entry.credentials, tls=wanted.entry.tls
    )
    with RecordReader(options, patience=0.0) as reader:
        try:
            reader.queues(wanted.topic)
        except RouteNotFound:
            raise TopicMissing(wanted.topic, reader.topics()) from None


def _pull(wanted: ConsumeSettings, printing: MessagePrinter) -> None:
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
    """Commit the offsets of the queues that are still assigned to us."""
    ours = {queue for queues in consumer.assignment().values() for queue in queues}
    offsets = {queue: offset for queue, offset in reached.items() if queue in ours}
    reached.clear()
    if offsets:
        consumer.commit(offsets)


def _push(wanted: ConsumeSettings, printing: MessagePrinter) -> None:
    from pocketmq.blocking.push_consumer import PushConsumer

    begun, refused, closed = threading.Event(), threading.Event(), threading.Event()
    line = threading.Lock()

    def handle(message: ReceivedMessage) -> None:
        begun.wait()  # a signal before that ends the command at once, and nothing may be printed
        if not _is_wanted(message, wanted):
            return
        with line:
            printed = printing(message)
        if not printed:
            refused.set()
            closed.wait()  # beyond the count: it stays uncommitted and is redelivered to the group
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
    try:
        consumer.start()
        printing.begin()
        begun.set()
        while not printing.over_or_silent(wanted.timeout):
            printing.over.wait(wanted.patience)
    finally:
        printing.end()
        begun.set()
        try:
            if line.acquire(timeout=_LAST_LINE):
                line.release()
            # Not longer: another message may come meanwhile, and its handler waits for the end.
            consumer.close(wait=0.0 if refused.is_set() else _RETURN)
        finally:
            closed.set()


def _is_wanted(message: ReceivedMessage, wanted: ConsumeSettings) -> bool:
    return wanted.key is None or wanted.key in message.keys
