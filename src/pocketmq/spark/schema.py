"""The columns of the source: their Spark types, and which of them a reader is asked for.

A schema of the user's own names the columns wanted; others are not even decoded.
"""

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pocketmq.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: dict[str, DataType] = {
    "topic": StringType(),
    "brokerName": StringType(),
    "queueId": IntegerType(),
    "queueOffset": LongType(),
    "body": BinaryType(),
    "tags": StringType(),
    "keys": StringType(),
    "properties": MapType(StringType(), StringType()),
    "messageId": StringType(),
    "bornTimestamp": TimestampType(),
    "storeTimestamp": TimestampType(),
    "bornHost": StringType(),
    "reconsumeTimes": IntegerType(),
}
"""All columns, in order."""

_ALSO = {"body": StringType()}
"""Another type a column may be asked for as: a body of text."""


def full_schema() -> StructType:
    """Give all columns."""
    return StructType([StructField(name, kind) for name, kind in COLUMNS.items()])


def wanted_columns(schema: StructType) -> tuple[str, ...]:
    """Give which column stands behind each field of a schema; raises `InvalidInput`.

    Names count in any case, as they do in SQL.
    """
    known = {name.lower(): name for name in COLUMNS}
    wanted = []
    for field in schema.fields:
        name = known.get(field.name.lower())
        if name is None:
            raise InvalidInput(f"there is no column {field.name!r}; there are {', '.join(COLUMNS)}")
        kind = field.dataType
        if not _same(kind, COLUMNS[name]) and kind != _ALSO.get(name):
            right = COLUMNS[name].simpleString()
            also = f" or {_ALSO[name].simpleString()}" if name in _ALSO else ""
            raise InvalidInput(
                f"column {field.name!r} is {right}{also}, and cannot be {kind.simpleString()}"
            )
        wanted.append(name)
    return tuple(wanted)


def _same(kind: DataType, column: DataType) -> bool:
    if isinstance(kind, MapType) and isinstance(column, MapType):
        return (kind.keyType, kind.valueType) == (column.keyType, column.valueType)
    return kind == column


def arrow_schema(schema: StructType) -> "pa.Schema":
    """Give the same for Arrow, exactly as Spark expects it."""
    return to_arrow_schema(schema, timezone="UTC")
