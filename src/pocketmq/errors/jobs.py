"""Long-running jobs: reading and writing topics in bulk, pipelines, migrations."""

from pocketmq.errors.tree import MQError
from pocketmq.errors.usage import InvalidInput


class OptionInvalid(InvalidInput):
    """An option of a data source that cannot work; `option` is its name."""

    def __init__(self, option: str, reason: str) -> None:
        self.option = option
        self.reason = reason
        super().__init__(f"option {option!r} {reason}")


class DataLost(MQError):
    """Messages that were to be read are not there any more, or their queue is gone.

    `first` and `end` are the offsets that cannot be read; `end` is not among them.
    """

    def __init__(
        self, topic: str, broker: str, queue_id: int, span: tuple[int, int], why: str
    ) -> None:
        self.topic = topic
        self.broker = broker
        self.queue_id = queue_id
        self.first, self.end = span
        self.why = why
        what = f"offsets {self.first} to {self.end - 1}" if self.end > self.first else "messages"
        super().__init__(
            f"{what} of queue {queue_id} of topic {topic!r} on broker {broker!r} cannot be read: "
            f"{why}; with failOnDataLoss=false the stream goes on without them"
        )


class RowRefused(InvalidInput):
    """A row that cannot become a message; `row` counts from 0 in its partition."""

    def __init__(self, row: int, partition: int | None, column: str, reason: str) -> None:
        self.row = row
        self.partition = partition
        self.column = column
        self.reason = reason
        place = "" if partition is None else f" of partition {partition}"
        super().__init__(f"row {row}{place} (from 0): column {column!r} {reason}")


class RowsNotSent(MQError):
    """Rows that no broker acknowledged; `first` and `last` count from 0 in their partition."""

    def __init__(
        self, topic: str, first: int, last: int, partition: int | None, error: MQError
    ) -> None:
        self.topic = topic
        self.first = first
        self.last = last
        self.partition = partition
        rows = f"row {first}" if first == last else f"rows {first} to {last}"
        place = "" if partition is None else f" of partition {partition}"
        super().__init__(f"{rows}{place} (from 0) did not get to topic {topic!r}: {error}")


class LedgerUnusable(MQError):
    """The ledger of an exactly-once stream cannot be read or written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the ledger at {path!r} cannot be used: {reason}")


class BatchDecided(MQError):
    """A micro-batch was to be decided after a later one: another run of the query is further on."""

    def __init__(self, query: str, batch: int, last: int) -> None:
        self.query = query
        self.batch = batch
        self.last = last
        super().__init__(
            f"batch {batch} of query {query} comes after batch {last} was decided; "
            "is the same query running twice?"
        )


class PipelineFailed(MQError):
    """A pipeline could not go on; what it had done stays, and a new run goes on from there."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"pipeline {name} failed: {reason}")


class CannotMigrate(MQError):
    """A topic, group or queue cannot be moved as things are; what was copied stays and counts."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject} cannot be migrated: {reason}")


class MigrationFileUnusable(MQError):
    """The file that keeps how far a migration is cannot be used, or belongs to another one."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the migration's file {path!r} cannot be used: {reason}")
