"""The columns that bodies are read into: given, inferred, or those of the run before."""

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from pocketmq.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INFER = "infer"
INFERRED_FROM = 10_000
"""So many messages of the topics' beginnings are looked at."""


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
        raise InvalidInput(f"{text[:100]!r} is no schema: {reason}") from problem
    if not isinstance(schema, StructType) or not schema.fields:
        raise InvalidInput(f"{text[:100]!r} is no schema: it names no column")
    return schema


def _json(text: str) -> dict[str, object]:
    import json

    value = json.loads(text)
    if not isinstance(value, dict):
        raise InvalidInput("the schema is no JSON object")
    return value


def inferred_schema(spark: "SparkSession", options: dict[str, str]) -> StructType:
    """Look at the topics' first messages; raises `InvalidInput` if there is no JSON object."""
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
    raise InvalidInput("no schema can be inferred: no message at hand is a JSON object")


def remembered_schema(
    place: Path, wanted: str | None, spark: "SparkSession", options: dict[str, str]
) -> StructType | None:
    """Give the schema of this ingestion, and remember it for the next run.

    A run that goes on keeps the columns it began with. Raises `InvalidInput` for another schema
    than the one remembered.
    """
    path = place / "schema.json"
    if path.exists():
        known = given_schema(path.read_text("utf-8")) if path.stat().st_size > 2 else None
        if wanted in (None, INFER) or (known is not None and known == given_schema(str(wanted))):
            return known
        raise InvalidInput(f"{place} was begun with other columns; see {path}, or choose another")
    schema = None
    if wanted is not None:
        schema = inferred_schema(spark, options) if wanted == INFER else given_schema(wanted)
    draft = path.with_name(".schema.json.part")
    draft.write_text("" if schema is None else schema.json(), "utf-8")
    draft.replace(path)
    return schema
