"""Streaming queries of pipelines: their start and end, counting rows, naming errors."""

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from pocketmq.errors import InvalidInput
from pocketmq.spark.progress import stream_lag

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POLL = 0.25
"""Seconds between two polls of a query."""


def wait_for(
    query: "StreamingQuery", stop: threading.Event, tell: Callable[[], None] | None = None
) -> None:
    """Wait until a query ends, `stop` is set, or Ctrl-C is pressed, which raises nothing.

    Raises the error that ended the query.
    """
    ended = False
    try:
        while not ended and not stop.is_set():
            ended = bool(query.awaitTermination(POLL))  # type: ignore[arg-type]  # parts of seconds
            if tell is not None:
                tell()  # also at the end: a stopped Spark Connect query reports nothing
    except KeyboardInterrupt:
        pass
    finally:
        query.stop()


class Counted:
    """The rows of a query's micro-batches, collected from its recent progress."""

    def __init__(self) -> None:
        self.behind: int | None = None
        """Messages yet to be read as of the last micro-batch counted; None if unknown."""
        self._rows: dict[int, int] = {}

    def look(self, query: "StreamingQuery") -> None:
        """Add what the query reports of its last micro-batches.

        Rows and lag are of one report: asked for again, it may be that of the next batch.
        """
        recent = query.recentProgress
        if recent:
            self.behind = stream_lag(recent[-1]).total
        for progress in recent:
            # By source: Spark Connect does not report the total.
            rows = sum(int(source["numInputRows"] or 0) for source in progress["sources"])
            if rows:  # an idle query reports its next batch
                self._rows[int(progress["batchId"])] = rows

    @property
    def batches(self) -> int:
        """The number of micro-batches with rows."""
        return len(self._rows)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self._rows.values())


def behind(query: "StreamingQuery") -> int | None:
    """Return the messages a query has yet to read, by its last micro-batch; None if unknown."""
    last = query.lastProgress
    return None if last is None else stream_lag(last).total


def begun(start: "Callable[[], StreamingQuery]", checkpoint: object) -> "StreamingQuery":
    """Start a query; raises `InvalidInput` if Spark cannot use its checkpoint.

    Other errors are raised as they are.
    """
    try:
        return start()
    except (PySparkException, Py4JError) as problem:
        if not _is_about_checkpoint(problem):
            raise
        reason = f"cannot use checkpoint {checkpoint}: {reason_of(problem)}"
        raise InvalidInput(reason) from problem


def _is_about_checkpoint(problem: Exception) -> bool:
    """Return whether Spark failed while it read or wrote a checkpoint, by where Java raised it.

    Errors of file systems and of JSON do not name the checkpoint. Spark Connect does not report
    where; there, errors that Spark has a name for are others.
    """
    if _OURS.search(_text(problem)):
        return False
    java = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    if java is None:
        return isinstance(problem, PySparkException) and problem.getCondition() is None
    while java is not None:
        if any(_OF_CHECKPOINTS.search(str(frame)) for frame in java.getStackTrace()):
            return True
        java = java.getCause()
    return False


_OF_CHECKPOINTS = re.compile(r"[cC]heckpoint|StreamMetadata|MetadataLog")
_OURS = re.compile(r"pocketmq\.errors\.[\w.]+: (.+)")
_NO_CLASS = re.compile(r"ClassNotFoundException: (?:Class )?([\w.$]+)")
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception)(?:: .*)?$", re.MULTILINE)


def reason_of(problem: Exception) -> str:
    """Return the useful line of Spark's or Java's error: that of our own error, or the first."""
    text = _text(problem)
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1])
    missing = _NO_CLASS.search(text)
    if missing:
        return (
            f"Spark has no class {missing[1]}; add its package by the setting spark.jars.packages "
            "(for s3a:// it is org.apache.hadoop:hadoop-aws)"
        )
    raised = _RAISED.findall(text) if "Traceback (most recent call last)" in text else []
    lines = [*raised[-1:], *(line.strip() for line in text.splitlines() if line.strip())]
    return lines[0] if lines else type(problem).__name__


def _text(problem: Exception) -> str:
    java = getattr(problem, "java_exception", None)  # py4j's text starts with the call
    return str(problem) if java is None else str(java.getMessage() or java)
