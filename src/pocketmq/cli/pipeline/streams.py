"""What pipelines share: the cluster they read, the options of streams, a stop by Ctrl-C."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

import click
import msgspec

from pocketmq.blocking.record_reader import RecordReader
from pocketmq.cli.commands import FiniteRange, all_of, json_option
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.cli.pipeline.starting import InterruptHandler, debug_option, started_spark
from pocketmq.cli.progress import ProgressBar
from pocketmq.client.name_servers import name_server_addresses
from pocketmq.client.options import ClientOptions
from pocketmq.model.names import check_topic
from pocketmq.spark.options import client_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 3.0


class StreamRun(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the options that streams share."""

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
    """Return the options that streams share; the command gets their values as `run`."""
    options = all_of(
        click.option(
            "-t",
            "--topic",
            "topics",
            multiple=True,
            metavar="TOPIC",
            help="Topic to read; repeatable.",
        ),
        click.option("--once", is_flag=True, help="Copy the messages stored so far, then stop."),
        click.option(
            "--from",
            "starting",
            type=click.Choice(["earliest", "latest"]),
            default="earliest",
            show_default=True,
            help="Where the first run starts.",
        ),
        click.option("-g", "--group", help="Consumer group to publish the progress to."),
        click.option(
            "--every",
            type=FiniteRange(0.1, 86_400),
            default=every,
            show_default=True,
            metavar="SECONDS",
            help="Interval of batches.",
        ),
        click.option(
            "--largest-batch",
            type=click.IntRange(1),
            metavar="N",
            help="Maximum number of messages per batch.",
        ),
        click.option(
            "--master", metavar="URL", default="local[*]", show_default=True, help="Spark master."
        ),
        json_option("Print the result as JSON."),
        debug_option,
        entry_options,
    )

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def gathered(**given: Any) -> None:
            given["entry"] = Entry.taken_from(given)
            common = {name: given.pop(name) for name in StreamRun.__struct_fields__}
            command(run=StreamRun(**common), **given)

        found: Callable[..., None] = options(gathered)
        return found

    return add


def check_topics(client: ClientOptions, topics: Sequence[str]) -> None:
    """Check that the topics can be read, before Spark is started, which takes long.

    Raises `InvalidInput`, `NameServersUnreachable` and `RouteNotFound`.
    """
    with RecordReader(client, patience=_PATIENCE) as reader:
        for topic in topics:
            check_topic(topic)
            reader.queues(topic)
        if not topics:
            reader.topics()


def pace(rows: int, seconds: float, behind: int | None) -> str:
    """Return the rate of a stream, and the lag and the time it will take, as far as known."""
    rate = rows / seconds if seconds else 0.0
    words = [f"{rate:,.0f}/s"]
    if behind is not None:
        words.append(f"{behind:,} behind")
    if behind and rate:
        words.append(f"about {behind / rate:,.0f} s left")
    return ", ".join(words)


@contextmanager
def running(
    name: str, run: StreamRun
) -> Iterator[tuple["SparkSession", ProgressBar, threading.Event]]:
    """Run Spark, with a line of progress, and an event that Ctrl-C or SIGTERM sets.

    A second signal, or one that comes while Spark starts, stops the command immediately.
    """
    handler = InterruptHandler()
    with ProgressBar("", after=0) as line:
        line.say("starting Spark …")
        with started_spark(name, run.master, handler) as spark:
            handler.graceful = True
            yield spark, line, handler.stop


class ReachedCluster(msgspec.Struct, frozen=True):
    """A cluster as a pipeline reaches it, itself and as options of Spark's source.

    Secrets go to Spark as options of a read or a write, which it hands to tasks; they are not part
    of its command line, its settings or its description of a query.
    """

    name_server: str
    client: ClientOptions
    options: dict[str, str]
    """The same for a source or sink, without the name server; must not be printed."""

    @classmethod
    def by(cls, name_server: str, entry: Entry) -> Self:
        """Build it from the options, or else from the environment.

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
