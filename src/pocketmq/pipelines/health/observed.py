"""What was observed of groups: rebalance events, offsets, deliveries; and the files of them.

Owns the forms. A line that cannot be read is kept with the reason, never dropped in silence.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from pocketmq import RebalanceEvent
from pocketmq.errors import InvalidInput
from pocketmq.model.queue import QueueName

LONGEST_LINE = 16 * 1024 * 1024
AND_MORE = "and more"
"""Where the bad lines are that are not listed one by one."""
T = TypeVar("T")


class OffsetSample(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group had come in a queue at a time, and how far the queue went.

    `committed` is None where the group has no offset yet; it counts from `lowest` then.
    """

    time: float
    group: str
    topic: str
    broker: str
    queue: int
    committed: int | None = None
    lowest: int = 0
    highest: int

    @property
    def name(self) -> QueueName:
        """The queue's name."""
        return QueueName(self.topic, self.broker, self.queue)

    @property
    def lag(self) -> int:
        """How many messages wait."""
        done = self.lowest if self.committed is None else self.committed
        return max(0, self.highest - done)


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a member's handler was given."""

    time: float
    group: str
    client_id: str
    topic: str
    broker: str
    queue: int
    offset: int

    @property
    def name(self) -> QueueName:
        """The queue's name."""
        return QueueName(self.topic, self.broker, self.queue)


class BadLine(msgspec.Struct, frozen=True):
    """Something among the observations that is none."""

    where: str
    reason: str


class Observations(msgspec.Struct, frozen=True):
    """All that is known. Without deliveries nothing is said of duplicates (None)."""

    events: list[RebalanceEvent]
    offsets: list[OffsetSample] = []
    deliveries: list[Delivery] | None = None
    bad: list[BadLine] = []


def read_events(path: str | Path, bad: list[BadLine]) -> list[RebalanceEvent]:
    """Read events, one JSON object a line; what is none goes to `bad`."""
    return list(_read(path, RebalanceEvent.from_json, bad))


def read_offsets(path: str | Path, bad: list[BadLine]) -> list[OffsetSample]:
    """Read samples of offsets."""
    return list(_read(path, msgspec.json.Decoder(OffsetSample).decode, bad))


def read_deliveries(path: str | Path, bad: list[BadLine]) -> list[Delivery]:
    """Read deliveries."""
    return list(_read(path, msgspec.json.Decoder(Delivery).decode, bad))


def decoded(
    lines: Iterable[tuple[str, bytes]], decode: Callable[[bytes], T], bad: list[BadLine]
) -> Iterator[T]:
    """Decode lines that come with the place they are from."""
    for where, line in lines:
        try:
            yield decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            bad.append(BadLine(where, str(problem)))


def _read(path: str | Path, decode: Callable[[bytes], T], bad: list[BadLine]) -> Iterator[T]:
    try:
        yield from decoded(_lines(Path(path)), decode, bad)
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from problem


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Give the lines of a file, or of all files of a directory, with where they stand."""
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    for one in files:
        with one.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    reason = f"line {number} has more than {LONGEST_LINE} bytes"
                    raise InvalidInput(f"{one}: {reason}")
                if line.strip():
                    yield f"{one.name} line {number}", line
