"""Copying messages from topic to topic, within a cluster or between two.

A stream from the source to the sink: its checkpoint is the position, and the next run resumes from
there. Bodies, tags, keys, properties and priorities are copied; ids, times and offsets are those of
the new message.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from pocketmq import ClientOptions
from pocketmq.blocking.questions import Questions
from pocketmq.errors import InvalidInput, MQError, PipelineFailed
from pocketmq.model.names import check_consumer_group, check_topic, wrap_namespace
from pocketmq.model.property_names import PRIORITY, RESERVED
from pocketmq.pipelines.queries import Counted, begun, reason_of, wait_for
from pocketmq.spark.options import client_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_TO_ITSELF = "a topic cannot be copied to itself"
_NOT_COPIED = sorted(RESERVED | {"__transactionId__"})


class CopySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to copy.

    `to_topic` is where all messages go; without it topics keep their names, which needs another
    cluster. With `keep_order` all messages of a queue go to one queue, in their order; else they
    are spread over all queues. `exactly_once` copies each message once whatever fails, but sends
    it twice; else the run after a crash may copy some again. `group` is a consumer
    group that the progress is committed to. `from_options` and `to_options` are further options of
    the source and the sink.
    """

    to_topic: str | None = None
    once: bool = False
    keep_order: bool = False
    exactly_once: bool = False
    starting: str = "earliest"
    group: str | None = None
    every: float = 1.0
    """Seconds between batches of a continuous run."""
    largest_batch: int | None = None
    from_options: Mapping[str, str] = {}
    to_options: Mapping[str, str] = {}


class CopyProgress(msgspec.Struct, frozen=True):
    """The progress of a run."""

    batches: int
    messages: int
    seconds: float
    behind: int | None = None
    """Messages that are stored and not copied, as of the last batch."""


class CopyResult(msgspec.Struct, frozen=True):
    """The result of a run."""

    batches: int
    messages: int
    seconds: float


def copy_topics(
    spark: "SparkSession",
    name_server: str,
    topics: Sequence[str],
    *,
    to_name_server: str,
    checkpoint: str | Path,
    settings: CopySettings | None = None,
    progress: Callable[[CopyProgress], None] | None = None,
    stop: threading.Event | None = None,
) -> CopyResult:
    """Copy messages, resuming where the last run ended; `checkpoint` is a directory of its own.

    With `once` it ends when everything stored at the start is copied; else it runs until `stop` is
    set or Ctrl-C is pressed, which raises nothing. Raises `InvalidInput` for invalid settings,
    `PipelineFailed` if the stream fails.
    """
    settings = settings or CopySettings()
    check_copy(name_server, topics, to_name_server, settings)
    check_apart(name_server, topics, to_name_server, settings)
    began, counted = monotonic(), Counted()
    source = {
        "nameServer": name_server,
        "subscribe": ",".join(topics),
        "startingOffsets": settings.starting,
        **settings.from_options,
    }
    if settings.group is not None:
        source["groupId"] = settings.group
    if settings.largest_batch is not None:
        source["maxOffsetsPerTrigger"] = str(settings.largest_batch)
    sink = {"nameServer": to_name_server, **settings.to_options}
    if settings.to_topic is not None:
        sink["topic"] = settings.to_topic
    if settings.exactly_once:
        sink["exactlyOnce"] = "true"
    try:
        read = spark.readStream.format("rocketmq").options(**source).load()
        query = _start(_shaped(read, settings), sink, checkpoint, settings)

        def tell() -> None:
            counted.look(query)
            if progress is not None:
                spent = round(monotonic() - began, 3)
                progress(CopyProgress(counted.batches, counted.rows, spent, counted.behind))

        wait_for(query, stop or threading.Event(), tell)
        tell()
    except PySparkException as problem:
        raise PipelineFailed("copy", reason_of(problem)) from problem
    return CopyResult(counted.batches, counted.rows, round(monotonic() - began, 3))


def check_copy(
    name_server: str, topics: Sequence[str], to_name_server: str, settings: CopySettings
) -> None:
    """Raise `InvalidInput` for an impossible copy."""
    if not topics:
        raise InvalidInput("name at least one topic to copy")
    if settings.group is not None:
        check_consumer_group(settings.group)
    for topic in (*topics, *([] if settings.to_topic is None else [settings.to_topic])):
        check_topic(topic)
    if name_server == to_name_server and _of_one_name(topics, settings):
        raise InvalidInput(f"{_TO_ITSELF}: name another topic, or another cluster")


def check_apart(
    name_server: str, topics: Sequence[str], to_name_server: str, settings: CopySettings
) -> None:
    """Raise `InvalidInput` for a topic that has the same broker on both sides."""
    source = client_of(name_server, settings.from_options)
    target = client_of(to_name_server, settings.to_options)
    for topic in _of_one_name(topics, settings):
        broker = shared_broker(source, target, topic)
        if broker is not None:
            raise InvalidInput(f"{_TO_ITSELF}: broker {broker} has {topic!r} on both sides")


def _of_one_name(topics: Sequence[str], settings: CopySettings) -> list[str]:
    """Return the topics that keep their names."""
    return [topic for topic in topics if settings.to_topic in (None, topic)]


def _shaped(messages: "DataFrame", settings: CopySettings) -> "DataFrame":
    """Return the rows of the sink, without the properties that RocketMQ itself adds.

    An exactly-once copy has no priorities: brokers take none in batches.
    """
    kept = F.map_filter(
        "properties",
        lambda name, value: ~name.isin(_NOT_COPIED) & (F.length(F.trim(value)) > 0),
    )
    columns = [F.col("topic"), F.col("body"), F.col("tags"), F.col("keys")]
    columns.append(kept.alias("properties"))
    if not settings.exactly_once:
        priority = F.try_element_at("properties", F.lit(PRIORITY)).try_cast("int")
        columns.append(F.when(priority >= 0, priority).alias("priority"))
    if settings.keep_order:
        place = F.concat_ws(" ", "topic", "brokerName", "queueId")
        columns.append(place.alias("orderingKey"))
    return messages.select(*columns)


def _start(
    rows: "DataFrame", sink: Mapping[str, str], checkpoint: str | Path, settings: CopySettings
) -> "StreamingQuery":
    writer = (
        rows.writeStream.format("rocketmq")
        .options(**sink)
        .option("checkpointLocation", str(checkpoint))
    )
    if settings.once:
        return begun(writer.trigger(availableNow=True).start, checkpoint)
    return begun(writer.trigger(processingTime=f"{settings.every} seconds").start, checkpoint)


PATIENCE = 3.0
"""Seconds to wait for a name server."""


def shared_broker(source: ClientOptions, target: ClientOptions, topic: str) -> str | None:
    """Return a broker that has the topic on both sides, None if there is none.

    Copied to itself a topic would grow for ever. Addresses of name servers do not tell clusters
    apart: a host has many names, and a broker may register with several; brokers of the routes do.
    None as well if a side does not respond: reading or writing will report that.
    """
    if source.namespace_v2 != target.namespace_v2:
        return None
    if wrap_namespace(source.namespace, topic) != wrap_namespace(target.namespace, topic):
        return None
    try:
        both = _brokers(source, topic) & _brokers(target, topic)
    except MQError:
        return None
    return min((f"{name} at {address}" for _cluster, name, address in both), default=None)


def _brokers(options: ClientOptions, topic: str) -> set[tuple[str, str, str]]:
    questions = Questions(options, "comparison of routes", PATIENCE)
    try:
        route = questions.route(topic)
    finally:
        questions.close()
    return {
        (data.cluster, data.broker_name, address)
        for data in route.broker_datas
        for address in data.broker_addrs.values()
    }
