"""What pipelines that run as a stream have in common: options, a session, an end by Ctrl-C."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

import click
import msgspec

from pocketmq.blocking.record_reader import RecordReader
from pocketmq.cli.entry import Entry, entry_options
from pocketmq.cli.options import FiniteRange
from pocketmq.cli.output import ProgressLine
from pocketmq.cli.pipeline.starting import InterruptHandler, started_spark
from pocketmq.client.name_servers import name_server_addresses
from pocketmq.client.options import ClientOptions
from pocketmq.model.names import check_topic
from pocketmq.spark.options import client_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 3.0


class StreamRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the common options say."""

    topics: tuple[str, ...]
    once: bool
    starting: str
    group: str | None
    every: float
    largest_batch: int | None
    master: str
    as_json: bool
    entry: Entry


def stream_options(*, every: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the common options to a command, which gets them as `run`."""
    options = [
        click.option(
            "-t", "--topic", "topics", multiple=True, metavar="TOPIC", help="Topic; repeatable."
        ),
        click.option("--once", is_flag=True, help="Copy what is there now, then end."),
        click.option(
            "--from",
            "starting",
            type=click.Choice(["earliest", "latest"]),
            default="earliest",
            show_default=True,
            help="Where a first run begins.",
        ),
        click.option("-g", "--group", help="Consumer group that shows how far it has come."),
        click.option(
            "--every",
            type=FiniteRange(0.1, 86_400),
            default=every,
            show_default=True,
            metavar="SECONDS",
            help="Time between batches.",
        ),
        click.option(
            "--largest-batch", type=click.IntRange(1), metavar="N", help="Messages a batch."
        ),
        click.option(
            "--master", metavar="URL", default="local[*]", show_default=True, help="Spark."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON."),
        entry_options,
    ]

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def gathered(**given: Any) -> None:
            given["entry"] = Entry.taken_from(given)
            common = {name: given.pop(name) for name in StreamRun.__struct_fields__}
            command(run=StreamRun(**common), **given)

        found: Callable[..., None] = gathered
        for option in reversed(options):
            found = option(found)
        return found

    return add


def check_topics(client: ClientOptions, topics: Sequence[str]) -> None:
    """Find out before Spark is started, which takes long, that there is nobody to read from.

    Raises `InvalidInput`, `NameServersUnreachable` and `RouteNotFound`.
    """
    with RecordReader(client, patience=_PATIENCE) as reader:
        for topic in topics:
            check_topic(topic)
            reader.queues(topic)
        if not topics:
            reader.topics()


@contextmanager
def running(
    name: str, run: StreamRun
) -> Iterator[tuple["SparkSession", ProgressLine, threading.Event]]:
    """Run Spark, with a line of progress, and an event that Ctrl-C or SIGTERM sets.

    The second of them, or one that comes while Spark starts, ends the command at once.
    """
    ending = InterruptHandler()
    with ProgressLine() as line:
        line.say("starting Spark …")
        with started_spark(name, run.master, ending) as spark:
            ending.in_order = True
            yield spark, line, ending.stop


class Reached(msgspec.Struct, frozen=True):
    """Where a cluster is, and how to be let in."""

    name_server: str
    client: ClientOptions
    options: dict[str, str]
    """The same for a source or a sink, without the name server; do not print them."""

    @classmethod
    def by(cls, name_server: str, entry: Entry) -> Self:
        """Put together what was given, else what the environment says.

        Raises `NameServersUnreachable` if no name server is named, and `InvalidInput`.
        """
        address = ";".join(name_server_addresses(name_server, os.environ))
        options = _options(entry)
        return cls(address, client_of(address, options), options)


def _options(entry: Entry) -> dict[str, str]:
    given: dict[str, str | None] = {}
    user, tls = entry.credentials, entry.tls
    if user is not None:
        given |= {"accessKey": user.access_key, "secretKey": user.secret_key}
    if tls is not None:
        given |= {
            "tls": "true",
            "tlsCa": tls.ca,
            "tlsCert": tls.cert,
            "tlsKey": tls.key,
            "tlsServerName": tls.server_name,
            "tlsVerify": None if tls.verify else "false",
        }
    return {name: value for name, value in given.items() if value}
