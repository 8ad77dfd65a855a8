"""The columns of the source: their Spark types, and which of them a query needs.

A user-defined schema selects columns; others are not even decoded.
"""

from typing import TYPE_CHECKING

from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from pocketmq.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: dict[str, types.DataType] = {
    "topic": types.StringType(),
    "brokerName": types.StringType(),
    "queueId": types.IntegerType(),
    "queueOffset": types.LongType(),
    "body": types.BinaryType(),
    "tags": types.StringType(),
    "keys": types.StringType(),
    "properties": types.MapType(types.StringType(), types.StringType()),
    "messageId": types.StringType(),
    "bornTimestamp": types.TimestampType(),
    "storeTimestamp": types.TimestampType(),
    "bornHost": types.StringType(),
    "reconsumeTimes": types.IntegerType(),
}
"""All columns, in order."""

_ALSO = {"body": types.StringType()}
"""Alternative types of columns: a body may be read as text."""


def full_schema() -> types.StructType:
    """Return all columns."""
    return types.StructType([types.StructField(name, kind) for name, kind in COLUMNS.items()])


def wanted_columns(schema: types.StructType) -> tuple[str, ...]:
    """Return the column of each field of a schema; raises `InvalidInput`.

    Names are case-insensitive, as in SQL.
    """
    known = {name.lower(): name for name in COLUMNS}
    wanted = []
    for field in schema.fields:
        name = known.get(field.name.lower())
        if name is None:
            raise InvalidInput(
                f"unknown column {field.name!r}; the source has {', '.join(COLUMNS)}"
            )
        kind = field.dataType
        if not _same(kind, COLUMNS[name]) and kind != _ALSO.get(name):
            right = COLUMNS[name].simpleString()
            also = f" or {_ALSO[name].simpleString()}" if name in _ALSO else ""
            raise InvalidInput(
                f"column {field.name!r} must be {right}{also}, not {kind.simpleString()}"
            )
        wanted.append(name)
    return tuple(wanted)


def _same(kind: types.DataType, column: types.DataType) -> bool:
    if isinstance(kind, types.MapType) and isinstance(column, types.MapType):
        return (kind.keyType, kind.valueType) == (column.keyType, column.valueType)
    return kind == column


def arrow_schema(schema: types.StructType) -> "pa.Schema":
    """Return the same as an Arrow schema, exactly as Spark expects it."""
    return to_arrow_schema(schema, timezone="UTC")
