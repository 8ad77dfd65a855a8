"""Options checked in `load()` and `save()`, before it is known what becomes of them."""

from collections.abc import Mapping

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
