"""The options of the source: what to read, from where to where, and how."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from pyspark.sql.datasource import DataSourceReader

from pocketmq import Filter, by_sql
from pocketmq.errors import InvalidInput, MQError, OptionInvalid
from pocketmq.model import MessageQueue
from pocketmq.model.names import TOOLS_GROUP, check_consumer_group, check_topic
from pocketmq.protocol.compression import INFLATE_LIMIT
from pocketmq.protocol.filter import subscribe
from pocketmq.spark import offsets
from pocketmq.spark import option_values as values
from pocketmq.spark.attendance import TopicSelection
from pocketmq.spark.options import REACH, SPARK_OWN, Reach, reach_of
from pocketmq.spark.planning import PER_TASK

_DEFAULT_DELAY = 900.0
LARGEST_PULL = 8 << 20
LARGEST_BODY = 512 << 20
PLANS_APART = hasattr(DataSourceReader, "pushLimit")
"""Whether queries of one DataFrame have plans of their own: since SPARK-58551, not in Spark 4.3."""


class PullOptions(msgspec.Struct, frozen=True):
    """How tasks pull."""

    reach: Reach
    group: str = TOOLS_GROUP
    wanted: Filter = Filter("*")
    tags: frozenset[str] = frozenset()
    fail_on_data_loss: bool = True
    messages: int = 8192
    """Messages per pull, if the broker returns as many."""
    size: int = LARGEST_PULL
    """Bytes per pull."""
    rows: int = 8192
    """Rows that are decoded together."""
    largest_body: int = INFLATE_LIMIT
    """The largest inflated size of a compressed body, in bytes."""


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of a batch or stream."""

    topics: TopicSelection
    pulling: PullOptions
    starting: offsets.OffsetSpec
    ending: offsets.OffsetSpec = offsets.OffsetSpec(offsets.LATEST)
    group: str | None = None
    """The consumer group that a stream commits its progress to, for operators."""
    max_offsets: int | None = None
    max_bytes: int | None = None
    min_offsets: int | None = None
    max_delay: float = _DEFAULT_DELAY
    min_partitions: int = 1
    per_partition: int = PER_TASK
    push_down: bool = False
    discovery: float = 2.0
    """Seconds between checks for new topics and queues."""

    @property
    def reach(self) -> Reach:
        """How the cluster is reached."""
        return self.pulling.reach


def _topics(value: str) -> tuple[str, ...]:
    found = values.names(value)
    for topic in found:
        check_topic(topic)
    return found


def _pattern(value: str) -> str:
    try:
        re.compile(values.text(value))
    except re.error as error:
        raise InvalidInput(f"is not a regular expression: {error}") from None
    return values.text(value)


def _assigned(value: str) -> tuple[MessageQueue, ...]:
    """Read `{"orders": {"broker-a": [0, 1]}}`."""
    try:
        found = msgspec.convert(json.loads(value), dict[str, dict[str, list[int]]])
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f'must be JSON such as {{"orders": {{"broker-a": [0, 1]}}}}: {error}'
        ) from None
    for topic in found:
        check_topic(topic)
    queues = [
        MessageQueue(topic, broker, number)
        for topic, brokers in found.items()
        for broker, numbers in brokers.items()
        for number in numbers
    ]
    if not queues or min(queue.queue_id for queue in queues) < 0:
        raise InvalidInput("must name at least one queue, with numbers of at least 0")
    return tuple(dict.fromkeys(queues))


def _pull_bytes(value: str) -> int:
    found = values.size(value)
    if found > LARGEST_PULL:
        raise InvalidInput(f"must be at most {LARGEST_PULL >> 20}m, not {value.strip()}")
    return found


def _inflated_bytes(value: str) -> int:
    found = values.size(value)
    if (
        found > LARGEST_BODY
    ):  # as text, of which each byte may need three, it must fit into a column
        raise InvalidInput(f"must be at most {LARGEST_BODY >> 20}m, not {value.strip()}")
    return found


def _group(value: str) -> str:
    check_consumer_group(value.strip())
    return value.strip()


KNOWN: dict[str, values.Read] = REACH | {
    "subscribe": _topics,
    "subscribePattern": _pattern,
    "assign": _assigned,
    "startingOffsets": lambda value: offsets.read_place(value, offsets.EARLIEST, group=True),
    "endingOffsets": lambda value: offsets.read_place(value, offsets.LATEST),
    "startingTimestamp": values.time_ms,
    "endingTimestamp": values.time_ms,
    "startingOffsetsByTimestamp": lambda value: offsets.read_times(value, offsets.EARLIEST),
    "endingOffsetsByTimestamp": lambda value: offsets.read_times(value, offsets.LATEST),
    "startingOffsetsByTimestampStrategy": values.one_of(error="error", latest="latest"),
    "tags": values.text,
    "sql": values.text,
    "groupId": _group,
    "failOnDataLoss": values.flag,
    "maxOffsetsPerTrigger": values.whole(1),
    "maxBytesPerTrigger": values.size,
    "minOffsetsPerTrigger": values.whole(1),
    "maxTriggerDelay": values.seconds,
    "minPartitions": values.whole(1, 100_000),
    "maxRecordsPerPartition": values.whole(1),
    "pullMessages": values.whole(1, 1_000_000),
    "pullBytes": _pull_bytes,
    "batchRows": values.whole(1, 1_000_000),
    "maxInflatedBytes": _inflated_bytes,
    "pushdown": values.flag,
    "discoveryInterval": values.seconds,
}
"""How each is read."""

_STREAM_ONLY = (
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "discoveryInterval",
)
_NO_OPTIONS = (
    "; there are no options at all: if this is a table that was created with columns of its own, "
    "create it without, because Spark does not hand its options to Python sources"
)
BATCH_ONLY = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "pushdown")


def source_options(
    given: Mapping[str, str], *, stream: bool, now_ms: int | None = None
) -> SourceOptions:
    """Read the options of a batch or a stream; `now_ms` is the time. Raises `OptionInvalid`."""
    found = values.read_options(given, KNOWN, spark_own=SPARK_OWN)
    for name in BATCH_ONLY if stream else _STREAM_ONLY:
        if name in found:
            kind = ("a stream", "batches") if stream else ("a batch", "streams")
            raise OptionInvalid(name, f"is not available for {kind[0]}, only for {kind[1]}")
    if found.get("pushdown") and not PLANS_APART:
        raise OptionInvalid(
            "pushdown",
            "would lose rows: in this version of Spark all queries of a DataFrame read what the "
            "last filters left. Leave it out, and narrow a query by 'assign', 'tags', 'sql', "
            "starting and ending offsets or times",
        )
    selected = values.alone(found, "subscribe", "subscribePattern", "assign")
    if selected is None:
        hint = "" if found else _NO_OPTIONS
        raise OptionInvalid(
            "subscribe", f"is missing; set it, or 'subscribePattern' or 'assign'{hint}"
        )
    values.together(found, "maxTriggerDelay", "minOffsetsPerTrigger")
    starting = _place(found, "starting", offsets.LATEST if stream else offsets.EARLIEST)
    ending = _place(found, "ending", offsets.LATEST)
    offsets.check_places(found, starting, ending, stream=stream)
    offsets.check_future(found, starting, int(time.time() * 1000) if now_ms is None else now_ms)
    most, least = found.get("maxOffsetsPerTrigger"), found.get("minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise OptionInvalid("minOffsetsPerTrigger", f"is larger than maxOffsetsPerTrigger ({most})")
    return SourceOptions(
        topics=TopicSelection(
            found.get("subscribe", ()), found.get("subscribePattern"), found.get("assign", ())
        ),
        pulling=_pulling(found),
        starting=starting,
        ending=ending,
        group=found.get("groupId"),
        max_offsets=most,
        max_bytes=found.get("maxBytesPerTrigger"),
        min_offsets=least,
        max_delay=found.get("maxTriggerDelay", _DEFAULT_DELAY),
        min_partitions=found.get("minPartitions", 1),
        per_partition=found.get("maxRecordsPerPartition", PER_TASK),
        push_down=found.get("pushdown", False),
        discovery=found.get("discoveryInterval", 2.0),
    )


def _place(found: Mapping[str, Any], which: str, default: int) -> offsets.OffsetSpec:
    given = values.alone(
        found, f"{which}Offsets", f"{which}Timestamp", f"{which}OffsetsByTimestamp"
    )
    if given is None:
        return offsets.OffsetSpec(default)
    value = found[given]
    return value if isinstance(value, offsets.OffsetSpec) else offsets.OffsetSpec(time_ms=value)


def _pulling(found: Mapping[str, Any]) -> PullOptions:
    wanted, tags = Filter("*"), frozenset[str]()
    given = values.alone(found, "tags", "sql")
    try:
        if given == "sql":
            wanted = by_sql(found["sql"])
        elif given == "tags":
            tags = subscribe("", found["tags"], version_ms=0).tags_set
            wanted = Filter(found["tags"])
    except MQError as error:
        raise OptionInvalid(str(given), f"is invalid: {error}") from None
    return PullOptions(
        reach_of(found),
        found.get("groupId", TOOLS_GROUP),
        wanted,
        tags,
        found.get("failOnDataLoss", True),
        found.get("pullMessages", 8192),
        found.get("pullBytes", LARGEST_PULL),
        found.get("batchRows", 8192),
        found.get("maxInflatedBytes", INFLATE_LIMIT),
    )
