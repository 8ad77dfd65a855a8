"""Failures on this machine: servers, stores, and long-running jobs over whole topics.

A server that cannot start or exited, a store that cannot be used; jobs that read and write topics
in bulk, pipelines, migrations.
"""

from pocketmq.errors.tree import MQError
from pocketmq.errors.usage import InvalidInput


class StoreError(MQError):
    """Anything wrong with a data directory."""


class StoreFull(StoreError):
    """The disk has no space for another file; the store resumes when space is freed."""

    retryable = True

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        super().__init__(f"disk full: no space for another file of {wanted} bytes; free disk space")


class StoreCorrupt(StoreError):
    """Files contradict each other in a way that recovery cannot repair."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StoreFailed(StoreError):
    """The operating system failed to read, write or sync a file of the store.

    After a failed sync it is unknown what reached the device: the store takes no more messages
    until it has been opened again.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"store I/O failed: {reason}; check the disk and restart the broker")


class StoreInUse(StoreError):
    """Another process uses the same data directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        super().__init__(
            f"data directory {directory} is in use by another broker; stop it or choose another one"
        )


class CannotStart(MQError):
    """A server or cluster cannot start with these settings; nothing of it is left running."""

    def __init__(self, part: str, reason: str) -> None:
        self.part = part
        self.reason = reason
        super().__init__(f"{part} cannot start: {reason}")


class PartEnded(MQError):
    """A broker process exited by itself while a caller waited for it."""

    def __init__(self, part: str, how: str) -> None:
        self.part = part
        self.how = how
        super().__init__(f"{part} {how}; see its last lines on stderr")


class OptionInvalid(InvalidInput):
    """An invalid option of a data source; `option` is its name."""

    def __init__(self, option: str, reason: str) -> None:
        self.option = option
        self.reason = reason
        super().__init__(f"option {option!r} {reason}")


class DataLost(MQError):
    """Messages to be read do not exist any more, or their queue is gone.

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
            f"{why}; set failOnDataLoss=false to continue without them"
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
        super().__init__(f"{rows}{place} (from 0) could not be sent to topic {topic!r}: {error}")


class LedgerUnusable(MQError):
    """The ledger of an exactly-once stream cannot be read or written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot use the ledger {path!r}: {reason}")


class BatchDecided(MQError):
    """A micro-batch arrived after a later one was committed: another run of the query is ahead."""

    def __init__(self, query: str, batch: int, last: int) -> None:
        self.query = query
        self.batch = batch
        self.last = last
        super().__init__(
            f"batch {batch} of query {query} arrived after batch {last} was committed; "
            "check that the query is not running twice"
        )


class BatchIncomplete(MQError):
    """A micro-batch was committed, but not all of its rows can be written to their topic."""

    def __init__(self, query: str, batch: int, reason: str) -> None:
        self.query = query
        self.batch = batch
        self.reason = reason
        super().__init__(
            f"batch {batch} of query {query} is committed, but cannot be completed: {reason}"
        )


class PipelineFailed(MQError):
    """A pipeline failed; its finished work is kept, and a new run resumes from there."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"pipeline {name} failed: {reason}")


class CannotMigrate(MQError):
    """A topic, group or queue cannot be migrated now; what was copied is kept."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"cannot migrate {subject}: {reason}")


class MigrationFileUnusable(MQError):
    """The progress file of a migration cannot be used, or belongs to another migration."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot use the migration file {path!r}: {reason}")
