"""A stream that cannot be read, as a reader: the reason is raised by its first call.

Spark (4.3) closes the reader of a failed start, and if `streamReader` has raised there is none:
the user then reads of a variable of Spark's, and nothing of the reason.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from pocketmq.errors import MQError
from pocketmq.spark.brief_errors import in_brief


class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises the same error wherever it is asked for something."""

    def __init__(self, error: MQError) -> None:
        self.error = error

    @in_brief
    def _refuse(self) -> NoReturn:
        raise self.error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802, D102 - Spark's name
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802, D102 - Spark's name
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802, D102 - Spark's name
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002, D102
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002, D102
        self._refuse()
