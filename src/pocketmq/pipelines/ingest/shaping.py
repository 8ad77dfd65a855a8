"""From messages to rows: bodies to columns, unreadable ones separately, the day of each.

Owns the schema of an ingestion, the expressions and the reasons. Spark parses bodies; the reason is
only computed for bodies that it cannot parse.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.types import StringType, StructField, StructType

from pocketmq.errors import InvalidInput
from pocketmq.pipelines.places import DataPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_WITH_A_DAY = ("timestamp", "date", "timestamp_ntz")
KEPT = (
    "topic", "brokerName", "queueId", "queueOffset", "tags", "keys", "properties", "messageId",
    "bornTimestamp", "storeTimestamp",
)  # fmt: skip
"""Columns of a message that are kept beside those of its body."""
RESERVED = {*(name.lower() for name in KEPT), "body", "day", "batch", "reason"}
_TORN = "_torn"
LONGEST_REASON = 300


class Shaped(NamedTuple):
    """The rows of a batch; `bad` is None where every body is accepted.

    Writing the good rows counts the bad ones on the way, as `bad` of `counted`: they are rare, and
    only if there are any is the batch read again for them.
    """

    good: "DataFrame"
    bad: "DataFrame | None" = None
    counted: Observation | None = None


def shaped(messages: "DataFrame", schema: StructType | None, day_from: str) -> Shaped:
    """Split messages into readable and unreadable ones.

    `day_from` is `store`, `born`, or a column of the schema with the time of a message.
    """
    if schema is None:
        return Shaped(messages.select(*KEPT, "body", _day(day_from, None).alias("day")))
    text = F.col("body").cast("string")
    torn = StructType([*schema.fields, StructField(_TORN, StringType())])
    parsed = F.from_json(
        text, torn, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _TORN}
    ).alias("value")
    # Spark would read a list of objects as its first one, and invalid UTF-8 as text.
    readable = F.is_valid_utf8(F.col("body")) & ~F.ltrim(text).startswith("[")
    rows = messages.select("*", parsed, readable.alias("readable"))
    read = F.col("readable") & F.col("value").isNotNull() & F.col(f"value.{_TORN}").isNull()
    fits = F.coalesce(read, F.lit(False))
    # An observed column is computed once; else the filter would parse every body twice more.
    counted = Observation()
    seen = rows.observe(counted, F.count(F.when(~fits, 1)).alias("bad"))
    good = seen.where(fits).select(
        *KEPT,
        *(F.col(f"value.`{_escaped(f.name)}`").alias(_column(f.name)) for f in schema.fields),
        _day(day_from, schema).alias("day"),
    )
    reason = F.udf(_Reason(schema), "string", useArrow=False)
    bad = rows.where(~fits).select(
        *KEPT, "body", reason("body").alias("reason"), _day("store", None).alias("day")
    )
    return Shaped(good, bad, counted)


def check_day(day_from: str, schema: StructType | None) -> None:
    """Raise `InvalidInput` for an invalid source of the day."""
    if day_from in ("store", "born"):
        return
    kinds = {} if schema is None else {f.name: f.dataType.typeName() for f in schema.fields}
    columns = [name for name, kind in kinds.items() if kind in _WITH_A_DAY]
    if day_from not in columns:
        known = ", ".join(["store", "born", *columns])
        raise InvalidInput(f"cannot take the day from {day_from}; choose one of {known}")


def _day(day_from: str, schema: StructType | None) -> Column:
    if day_from == "store":
        return F.to_date("storeTimestamp")
    if day_from == "born" or schema is None:
        return F.to_date("bornTimestamp")
    # A message without the column's value belongs to the day it was stored.
    return F.coalesce(F.to_date(f"value.`{_escaped(day_from)}`"), F.to_date("storeTimestamp"))


def _column(name: str) -> str:
    """Return the column name of a field, prefixed if a message has a column of that name."""
    return f"body_{name}" if name.lower() in RESERVED else name


def _escaped(name: str) -> str:
    return name.replace("`", "``")


class _Reason:
    """Returns why a body is unreadable; runs in Spark's workers, for bad bodies only."""

    def __init__(self, schema: StructType) -> None:
        self._kinds = {field.name: field.dataType.simpleString() for field in schema.fields}

    def __call__(self, body: bytes | bytearray | None) -> str:
        return self._reason(b"" if body is None else bytes(body))[:LONGEST_REASON]

    def _reason(self, body: bytes) -> str:
        if not body.strip():
            return "the body is empty"
        try:
            value = json.loads(body.decode("utf-8"))
        except UnicodeDecodeError as problem:
            return f"not UTF-8 at byte {problem.start}"
        except (ValueError, RecursionError) as problem:
            return f"not JSON: {problem}"
        if not isinstance(value, dict):
            return f"a JSON {_kind(value)}, not an object"
        wrong = [
            f"{name} is {_shown(value[name])}, not {kind}"
            for name, kind in self._kinds.items()
            if value.get(name) is not None and not _may_be(value[name], kind)
        ]
        return "; ".join(wrong) or "does not fit the schema"


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_OWN_KINDS = {"boolean": bool, "string": (str, int, float, bool, list, dict), "array": list}


def _may_be(value: Any, kind: str) -> bool:
    """Return whether Spark may accept a value; when in doubt it is not blamed."""
    if kind.startswith(_NUMBERS):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind.startswith(("struct", "map")):
        return isinstance(value, dict)
    if kind.startswith(("timestamp", "date", "binary")):
        return isinstance(value, str) and kind == "binary"
    own = next((types for name, types in _OWN_KINDS.items() if kind.startswith(name)), object)
    return isinstance(value, own)  # type: ignore[arg-type]


def _kind(value: Any) -> str:
    names = {list: "list", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


INFER = "infer"
_SCHEMA = "schema.json"
INFERRED_FROM = 10_000
"""Messages from the start of the topics that a schema is inferred from."""


def given_schema(text: str) -> StructType:
    """Read a schema: Spark's DDL (`id BIGINT, paid BOOLEAN`), its JSON, or a file of either.

    Raises `InvalidInput`.
    """
    if text.endswith((".json", ".ddl", ".sql", ".txt")) and Path(text).is_file():
        text = Path(text).read_text("utf-8")
    try:
        if text.lstrip().startswith("{"):
            return StructType.fromJson(_json(text))
        schema = StructType.fromDDL(text)
    except (PySparkException, ValueError, KeyError, TypeError) as problem:
        reason = str(problem).strip().splitlines()[0]
        raise InvalidInput(f"{text[:100]!r} is not a schema: {reason}") from problem
    if not isinstance(schema, StructType) or not schema.fields:
        raise InvalidInput(f"{text[:100]!r} is not a schema: it has no column")
    return schema


def _json(text: str) -> dict[str, object]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise InvalidInput("the schema is not a JSON object")
    return value


def inferred_schema(spark: "SparkSession", options: dict[str, str]) -> StructType:
    """Infer a schema from the topics' first messages; raises `InvalidInput` if none is JSON."""
    frame = spark.read.format("rocketmq").schema("body binary").options(**options).load()
    bodies = (
        frame.limit(INFERRED_FROM)
        .selectExpr("cast(body as string) body")
        .where("ltrim(body) like '{%'")
    )
    texts = [row["body"] for row in bodies.collect()]
    if texts:
        rows = spark.sparkContext.parallelize(texts, 1)
        schema = spark.read.option("mode", "DROPMALFORMED").json(rows).schema
        if schema.fields:
            return schema
    raise InvalidInput("cannot infer a schema: none of the first messages is a JSON object")


def saved_schema(
    place: DataPlace, wanted: str | None, spark: "SparkSession", options: dict[str, str]
) -> StructType | None:
    """Return the schema of this ingestion, and save it for the next run.

    A resumed run keeps its columns. Raises `InvalidInput` for a schema other than the saved one.
    """
    saved = place.read(_SCHEMA)
    if saved is not None:
        known = given_schema(saved) if len(saved) > 2 else None
        if wanted in (None, INFER) or (known is not None and known == given_schema(str(wanted))):
            return known
        raise InvalidInput(
            f"{place} was started with another schema; see {place}/{_SCHEMA}, or use another "
            "directory"
        )
    schema = None
    if wanted is not None:
        schema = inferred_schema(spark, options) if wanted == INFER else given_schema(wanted)
    place.write(_SCHEMA, "" if schema is None else schema.json())
    return schema
