"""The columns of the sink: which there are, of what types, and where a batch has them.

A column that would be lost without a word is refused, unless the source makes it: rows of one topic
can be written to another as they are.
"""

import msgspec
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

from pocketmq.errors import InvalidInput
from pocketmq.spark.schema import COLUMNS as OF_SOURCE

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_KINDS: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "topic": ((StringType,), "string"),
    "body": ((BinaryType, StringType), "binary or string"),
    "tags": ((StringType,), "string"),
    "keys": ((StringType, ArrayType), "string or array<string>"),
    "properties": ((MapType,), "map<string,string>"),
    "orderingKey": ((StringType, *_WHOLE), "string or a whole number"),
    "delay": (
        (*_WHOLE, FloatType, DoubleType, DecimalType, DayTimeIntervalType),
        "a number of seconds or an interval",
    ),
}


class SinkColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Where a batch has each column; -1 is: nowhere."""

    body: int
    topic: int = -1
    tags: int = -1
    keys: int = -1
    properties: int = -1
    ordering_key: int = -1
    delay: int = -1


def sink_columns(schema: StructType, *, topic_given: bool) -> SinkColumns:
    """Find the columns of a schema; names count in any case. Raises `InvalidInput`.

    With `topic_given` all rows go to one topic, and a column of that name says nothing.
    """
    spelled = {name.lower(): name for name in _KINDS}
    passed_over = {name.lower() for name in OF_SOURCE}
    found: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        name = spelled.get(field.name.lower())
        if name is None:
            if field.name.lower() in passed_over:
                continue
            raise InvalidInput(
                f"the sink has no column {field.name!r}; it takes {', '.join(_KINDS)}"
            )
        if name in found:
            raise InvalidInput(f"there are two columns {name!r}")
        _check_type(name, field.dataType)
        found[name] = place
    if "body" not in found:
        raise InvalidInput("there is no column 'body'; rename the one that holds the messages")
    if topic_given:
        found.pop("topic", None)
    elif "topic" not in found:
        raise InvalidInput("nothing says where to: add a column 'topic', or option 'topic'")
    if "orderingKey" in found:
        found["ordering_key"] = found.pop("orderingKey")
    return SinkColumns(**found)


def _check_type(name: str, kind: DataType) -> None:
    kinds, words = _KINDS[name]
    right = isinstance(kind, kinds)
    if isinstance(kind, ArrayType):
        right = right and isinstance(kind.elementType, StringType)
    if isinstance(kind, MapType):
        right = right and isinstance(kind.keyType, StringType)
        right = right and isinstance(kind.valueType, StringType)
    if not right:
        raise InvalidInput(f"column {name!r} is {words}, and cannot be {kind.simpleString()}")
