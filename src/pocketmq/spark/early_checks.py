"""Options checked in `load()` and `save()`, before it is known what becomes of them."""

from collections.abc import Mapping

from pocketmq.errors import OptionInvalid
from pocketmq.spark.option_values import read_options
from pocketmq.spark.options import SPARK_OWN
from pocketmq.spark.sink_options import SINK
from pocketmq.spark.source_options import BATCH_ONLY, KNOWN, source_options


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


_OF_SOURCE = {name.lower() for name in KNOWN}
