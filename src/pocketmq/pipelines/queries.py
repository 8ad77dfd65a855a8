"""Streams of pipelines: waiting for their end, counting their rows, telling why they failed."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POLL = 0.25
"""Seconds between looks at a stream."""


def wait_for(
    query: "StreamingQuery", stop: threading.Event, tell: Callable[[], None] | None = None
) -> None:
    """Wait until a stream ends, or shall: `stop` is set, or Ctrl-C comes, which raises nothing.

    Raises the error that the stream ended by.
    """
    ended = False
    try:
        while not ended and not stop.is_set():
            ended = bool(query.awaitTermination(POLL))  # type: ignore[arg-type]  # parts of seconds
            if tell is not None:
                tell()  # at the end too: a stream of Spark Connect tells nothing once stopped
    except KeyboardInterrupt:
        pass
    finally:
        query.stop()


class Counted:
    """How many rows the micro-batches of a stream had, asked for now and then."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}

    def look(self, query: "StreamingQuery") -> None:
        """Take over what the stream tells of its last micro-batches."""
        for progress in query.recentProgress:
            # Of all sources together a stream of Spark Connect tells nothing.
            rows = sum(int(source["numInputRows"] or 0) for source in progress["sources"])
            if rows:  # an idle stream tells of a batch to come
                self._rows[int(progress["batchId"])] = rows

    @property
    def batches(self) -> int:
        """Those with rows."""
        return len(self._rows)

    @property
    def rows(self) -> int:
        """All together."""
        return sum(self._rows.values())


def reason_of(problem: PySparkException) -> str:
    """Give what a person can use of Spark's error: the line of our own error, or the first."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("pocketmq.errors.")]
    if ours:
        return ours[-1].partition(": ")[2] or ours[-1]
    return lines[0] if lines else type(problem).__name__
