"""The options and columns of the sink, checked when a write is planned.

The result is a `SinkPlan`: frozen and picklable. A column that would be dropped silently is
refused, unless the source makes it: rows of one topic can be written to another as they are.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from pyspark.sql import types

from pocketmq.errors import InvalidInput, MQError, OptionInvalid
from pocketmq.model.names import check_producer_group, check_topic
from pocketmq.spark import option_values as values
from pocketmq.spark.options import REACH, SPARK_OWN, STAGING, Reach, reach_of
from pocketmq.spark.schema import COLUMNS as OF_SOURCE

_WHOLE = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_KINDS: dict[str, tuple[tuple[type[types.DataType], ...], str]] = {
    "topic": ((types.StringType,), "string"),
    "body": ((types.BinaryType, types.StringType), "binary or string"),
    "tags": ((types.StringType,), "string"),
    "keys": ((types.StringType, types.ArrayType), "string or array<string>"),
    "properties": ((types.MapType,), "map<string,string>"),
    "orderingKey": ((types.StringType, *_WHOLE), "string or a whole number"),
    "queueId": (_WHOLE, "a whole number"),
    "brokerName": ((types.StringType,), "string"),
    "priority": (_WHOLE, "a whole number"),
    "delay": (
        (*_WHOLE, types.FloatType, types.DoubleType, types.DecimalType, types.DayTimeIntervalType),
        "a number of seconds or an interval",
    ),
}


_FIELDS = {"orderingKey": "ordering_key", "queueId": "queue_id", "brokerName": "broker_name"}


class SinkColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The position of each column in a batch; -1 if it is missing."""

    body: int
    topic: int = -1
    tags: int = -1
    keys: int = -1
    properties: int = -1
    ordering_key: int = -1
    delay: int = -1
    queue_id: int = -1
    broker_name: int = -1
    priority: int = -1


def sink_columns(schema: types.StructType, *, topic_given: bool) -> SinkColumns:
    """Find the columns in a schema; names are case-insensitive. Raises `InvalidInput`.

    With `topic_given` all rows go to one topic, and a column `topic` is ignored.
    """
    spelled = {name.lower(): name for name in _KINDS}
    ignored = {name.lower() for name in OF_SOURCE}
    found: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        name = spelled.get(field.name.lower())
        if name is None:
            if field.name.lower() in ignored:
                continue
            raise InvalidInput(f"unknown column {field.name!r}; the sink takes {', '.join(_KINDS)}")
        if name in found:
            raise InvalidInput(f"column {name!r} occurs twice")
        _check_type(name, field.dataType)
        found[name] = place
    if "body" not in found:
        raise InvalidInput("column 'body' is missing; rename the one that holds the messages")
    if topic_given:
        found.pop("topic", None)
    elif "topic" not in found:
        raise InvalidInput("no topic: add a column 'topic', or set option 'topic'")
    return SinkColumns(**{_FIELDS.get(name, name): place for name, place in found.items()})


def _check_type(name: str, kind: types.DataType) -> None:
    kinds, words = _KINDS[name]
    right = isinstance(kind, kinds)
    if isinstance(kind, types.ArrayType):
        right = right and isinstance(kind.elementType, types.StringType)
    if isinstance(kind, types.MapType):
        right = right and isinstance(kind.keyType, types.StringType)
        right = right and isinstance(kind.valueType, types.StringType)
    if not right:
        raise InvalidInput(f"column {name!r} must be {words}, not {kind.simpleString()}")


GROUP = "pocketmq-spark-sink"
BATCH_SIZE = 512 << 10
LARGEST_BATCH = 4 << 20

SINK: dict[str, values.Read] = {
    **REACH,
    "topic": values.text,
    "producerGroup": values.text,
    "batchSize": values.size,
    "exactlyOnce": values.flag,
    "ledger": values.text,
    "stagingTopic": values.text,
}
"""How each is read."""

_FOR_EXACTLY_ONCE = ("ledger", "stagingTopic")


class ExactlyOnce(msgspec.Struct, frozen=True):
    """Settings of exactly-once writes; see `exactly_once`."""

    ledger: str
    """The ledger's directory, as absolute path."""
    staging: str = STAGING
    """The topic in which rows wait for the decision."""


class SinkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where rows are sent, and how."""

    reach: Reach
    columns: SinkColumns
    group: str
    topic: str | None = None
    batch_size: int = BATCH_SIZE
    exactly_once: ExactlyOnce | None = None


def sink_plan(
    given: Mapping[str, str], schema: types.StructType, *, overwrite: bool, stream: bool
) -> SinkPlan:
    """Read the options of a write of rows with this schema; raises `InvalidInput`."""
    if overwrite:
        raise InvalidInput(
            "topics can only be appended to; use mode('append'), or outputMode('append') in streams"
        )
    found = values.read_options(given, SINK, spark_own=SPARK_OWN)
    reach = reach_of(found)
    topic = found.get("topic")
    if topic is not None:
        _check("topic", check_topic, topic)
    if not 1024 <= found.get("batchSize", BATCH_SIZE) <= LARGEST_BATCH:
        raise OptionInvalid("batchSize", f"must be from 1024 to {LARGEST_BATCH} bytes")
    exactly_once = None
    if found.get("exactlyOnce"):
        if not stream:
            raise OptionInvalid("exactlyOnce", "is only available for streams")
        exactly_once = _exactly_once(given, found)
    for name in _FOR_EXACTLY_ONCE:
        if name in found and exactly_once is None:
            raise OptionInvalid(name, "requires option 'exactlyOnce' to be true")
    columns = sink_columns(schema, topic_given=topic is not None)
    for name, place in (("delay", columns.delay), ("priority", columns.priority)):
        if exactly_once is not None and place >= 0:  # brokers take neither in batches
            reason = f"cannot be combined with column {name!r}; drop the column"
            raise OptionInvalid("exactlyOnce", reason)
    group = found.get("producerGroup") or GROUP
    _check("producerGroup", check_producer_group, group)
    return SinkPlan(
        reach=reach,
        columns=columns,
        group=group,
        topic=topic,
        batch_size=found.get("batchSize", BATCH_SIZE),
        exactly_once=exactly_once,
    )


def _exactly_once(given: Mapping[str, str], found: Mapping[str, object]) -> ExactlyOnce:
    lower = {name.lower(): value for name, value in given.items()}
    checkpoint = lower.get("checkpointlocation", "")
    place = str(found.get("ledger") or (checkpoint and f"{checkpoint.rstrip('/')}/ledger"))
    if not place:
        raise OptionInvalid(
            "exactlyOnce",
            "requires option 'ledger', a directory, if there is no checkpointLocation",
        )
    parts = urlsplit(place)
    if parts.scheme not in ("", "file") or parts.netloc:
        name = "ledger" if "ledger" in found else "exactlyOnce"
        raise OptionInvalid(
            name,
            f"cannot keep its ledger in {place!r}; "
            "set option 'ledger' to a local directory that lasts as long as the checkpoint",
        )
    path = Path(unquote(parts.path) if parts.scheme else place).absolute()
    staging = str(found.get("stagingTopic") or STAGING)
    _check("stagingTopic", check_topic, staging)
    if staging == found.get("topic"):
        raise OptionInvalid("stagingTopic", "must not be the target topic")
    return ExactlyOnce(str(path), staging)


def _check(option: str, check: Callable[[str], None], value: str) -> None:
    try:
        check(value)
    except MQError as error:
        raise OptionInvalid(option, f"is invalid: {error}") from None
