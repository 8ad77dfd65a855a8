"""Options as Spark gives them to `load()`, `save()` and `CREATE TABLE`, before their use is known.

Those of a table are kept in the metadata of its columns: Spark (4.3) shows them to a Python
source only while the table is created, but the columns come back with every query. Secrets are
refused: everyone who may see a table may see its columns.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructField, StructType

from pocketmq.errors import OptionInvalid
from pocketmq.spark.option_values import names, read_options
from pocketmq.spark.options import SPARK_OWN
from pocketmq.spark.sink_options import SINK
from pocketmq.spark.source_options import BATCH_ONLY, KNOWN, source_options

PREFIX = "option."
"""How Spark marks options among the properties of a table that is created."""
_KEY = "pocketmq.options"
_SECRETS = ("accessKey", "secretKey", "securityToken", "tlsKeyPassword")
_READ = {"subscribe": None}
_OF_SOURCE = {name.lower() for name in KNOWN}


def options_of_table(given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a table that is being created; None if none is.

    Spark names the owner of a new table, also of one without options.
    """
    own = {
        name[len(PREFIX) :]: value
        for name, value in given.items()
        if name.lower().startswith(PREFIX)
    }
    for secret in _SECRETS:
        if secret.lower() in {name.lower() for name in own}:
            raise OptionInvalid(
                secret,
                "cannot be stored in a table, whose columns reveal it; use CREATE TEMPORARY VIEW, "
                "or give it to each query: SELECT … FROM table WITH (…)",
            )
    return own if own or "owner" in {name.lower() for name in given} else None


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns of a table that keep its options."""
    first, *others = schema.fields
    kept = {**(first.metadata or {}), _KEY: dict(options)}
    return StructType([StructField(first.name, first.dataType, first.nullable, kept), *others])


def kept_options(
    given: Mapping[str, str], schema: StructType, known: Mapping[str, Any]
) -> Mapping[str, str]:
    """Return the options of a query; those of its table count where it has none of its own.

    A table may be read and written: of its options only those are taken that are `known`.
    """
    ours = {name.lower() for name in known}
    kept: dict[str, str] = {}
    for field in schema.fields:
        found = (field.metadata or {}).get(_KEY)
        if isinstance(found, Mapping):
            kept |= {str(name): str(value) for name, value in found.items()}
    if not kept:
        return given
    own = {name.lower() for name in given}
    used = {
        name: value
        for name, value in kept.items()
        if name.lower() in ours and name.lower() not in own
    }
    return {**used, **given}


def topic_of_table(given: Mapping[str, str], schema: StructType) -> Mapping[str, str]:
    """Return the same with the topic that a table reads as the one that it is written to.

    Only if it reads one topic, and has no topic of its own.
    """
    read = {name.lower(): value for name, value in kept_options({}, schema, _READ).items()}
    written = {name.lower() for name in given}
    if "subscribe" not in read or "topic" in written:
        return given
    topics = names(read["subscribe"])
    return {**given, "topic": topics[0]} if len(topics) == 1 else given


def check_options(given: Mapping[str, str]) -> None:
    """Refuse names that neither the source nor the sink has, and values that do not read.

    Raises `OptionInvalid`.
    """
    read_options(given, KNOWN | SINK, spark_own=SPARK_OWN)


def check_source(given: Mapping[str, str]) -> None:
    """Refuse what neither a batch nor a stream can read. Raises `OptionInvalid`."""
    lower = {name.lower() for name in given}
    source_options(given, stream=lower.isdisjoint(name.lower() for name in BATCH_ONLY))


def check_table(given: Mapping[str, str]) -> None:
    """Refuse a table that can neither be read nor written. Raises `OptionInvalid`."""
    read = {name: value for name, value in given.items() if name.lower() in _OF_SOURCE}
    if not {"subscribe", "subscribepattern", "assign"}.isdisjoint(map(str.lower, given)):
        check_source(read)
    elif "topic" not in map(str.lower, given):
        raise OptionInvalid(
            "subscribe", "is missing; set it to read the table, 'topic' to write it"
        )
