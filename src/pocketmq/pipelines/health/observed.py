"""Observations of groups: rebalance events, offsets, deliveries.

Read from files, from topics through Spark, or sampled from running brokers. Owns the formats: one
JSON object per line; a message may hold several lines. An unreadable line is kept with the reason,
never dropped silently.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from pocketmq import ClientOptions
from pocketmq.balance.story.whole_events import Told
from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import MessageQueue, QueueName
from pocketmq.model.rebalance_event import RebalanceChange, read_event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


LONGEST_LINE = 16 * 1024 * 1024
AND_MORE = "and more"
"""The place of unreadable lines that are not listed one by one."""
T = TypeVar("T")


class OffsetSample(msgspec.Struct, frozen=True, kw_only=True):
    """A group's committed offset in a queue at a time, and the bounds of the queue.

    `committed` is None where the group has no offset yet; its lag then counts from `lowest`.
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
        """The number of messages not committed yet."""
        done = self.lowest if self.committed is None else self.committed
        return max(0, self.highest - done)


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery of a message to a member's handler."""

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
    """An unreadable line among the observations."""

    where: str
    reason: str


class Observations(msgspec.Struct, frozen=True):
    """All observations. Without deliveries (None) duplicates are unknown."""

    events: Sequence[Told]
    offsets: list[OffsetSample] = []
    deliveries: list[DeliveryRecord] | None = None
    bad: list[BadLine] = []


DECODERS: dict[str, Callable[[bytes], Any]] = {
    "events": read_event,
    "offsets": msgspec.json.Decoder(OffsetSample).decode,
    "deliveries": msgspec.json.Decoder(DeliveryRecord).decode,
}
"""The functions that read a line, by the kind of observation."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of a line that is not an observation."""


def read_events(path: str | Path, bad: list[BadLine]) -> list[Told]:
    """Read events, one JSON object per line; unreadable lines go to `bad`."""
    return list(_read(path, DECODERS["events"], bad))


def read_offsets(path: str | Path, bad: list[BadLine]) -> list[OffsetSample]:
    """Read samples of offsets."""
    return list(_read(path, DECODERS["offsets"], bad))


def read_deliveries(path: str | Path, bad: list[BadLine]) -> list[DeliveryRecord]:
    """Read deliveries."""
    return list(_read(path, DECODERS["deliveries"], bad))


def decoded(
    lines: Iterable[tuple[str, bytes]], decode: Callable[[bytes], T], bad: list[BadLine]
) -> Iterator[T]:
    """Decode lines that come with their place."""
    for where, line in lines:
        try:
            yield decode(line)
        except UNREADABLE as problem:
            bad.append(BadLine(where, str(problem)))


def incomplete(change: RebalanceChange) -> BadLine:
    """Return what to report of a change whose event before was not read."""
    event = change.event
    where = f"event of {event.client_id} in {event.group}, topic {event.topic}, at {event.started}"
    return BadLine(where, f"follows the event at {change.follows}, which was not read")


def _read(path: str | Path, decode: Callable[[bytes], T], bad: list[BadLine]) -> Iterator[T]:
    try:
        yield from decoded(_lines(Path(path)), decode, bad)
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from problem


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a file, or of all files of a directory, with their place."""
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


_COLUMNS = "brokerName string, queueId int, queueOffset bigint, body binary"


def read_topics(
    spark: "SparkSession",
    observed: Observations,
    *,
    name_server: str,
    topics: Mapping[str, str],
    options: Mapping[str, str] | None = None,
) -> Observations:
    """Add observations from topics: `topics` names those of `events`, `offsets`, `deliveries`.

    `options` are further options of the source, such as credentials.
    """
    reach = {"nameServer": name_server, **(options or {})}
    bad = list(observed.bad)
    found: dict[str, list[Any]] = {}
    for kind, topic in topics.items():
        rows = topic_frame(spark, reach, topic).toLocalIterator()
        found[kind] = list(decoded(topic_lines(topic, rows), DECODERS[kind], bad))
    deliveries = observed.deliveries
    if "deliveries" in found:
        deliveries = [*(deliveries or ()), *found["deliveries"]]
    return Observations(
        [*observed.events, *found.get("events", ())],
        [*observed.offsets, *found.get("offsets", ())],
        deliveries,
        first_bad(bad),
    )


def topic_frame(spark: "SparkSession", reach: Mapping[str, str], topic: str) -> "DataFrame":
    """Return the messages of a topic, with their places."""
    return spark.read.format("rocketmq").schema(_COLUMNS).options(**reach, subscribe=topic).load()


def topic_lines(topic: str, rows: "Iterable[Row]") -> Iterator[tuple[str, bytes]]:
    """Yield the lines of messages, each with its place."""
    for row in rows:
        where = f"{topic} {row['brokerName']}:{row['queueId']} offset {row['queueOffset']}"
        for line in bytes(row["body"]).splitlines():
            if line.strip():
                yield where, line


def first_bad(bad: list[BadLine], most: int = 1000) -> list[BadLine]:
    """Limit the list, so that a topic of something else does not fill the report."""
    more = len(bad) - most
    return bad if more <= 0 else [*bad[:most], BadLine(AND_MORE, f"{more} more")]


PATIENCE = 1.0
"""Seconds to wait for a broker; one that does not respond is left out of the sample."""


class OffsetSampler:
    """Samples the offsets of groups from brokers. Use it with `with`.

    A cluster is named by its name servers, or by options with credentials and TLS.
    """

    def __init__(self, cluster: str | ClientOptions, wanted: Iterable[tuple[str, str]]) -> None:
        self._wanted = sorted(set(wanted))
        named = ClientOptions(name_servers=cluster) if isinstance(cluster, str) else cluster
        self._reader = RecordReader(named, patience=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def sample(self) -> list[OffsetSample]:
        """Return one sample of every queue whose broker responds."""
        found = []
        now = time.time()
        bounds: dict[MessageQueue, Bounds] = {}
        silent: set[str] = set()  # asked once: to wait for each queue would delay the others
        for group, topic in self._wanted:
            try:
                queues = self._reader.queues(topic)
            except MQError:
                continue
            for queue in queues:
                if queue.broker_name in silent:
                    continue
                try:
                    if queue not in bounds:
                        bounds[queue] = self._reader.bounds(queue)
                    committed = self._reader.committed(group, queue)
                except MQError:
                    silent.add(queue.broker_name)
                    continue
                found.append(
                    OffsetSample(
                        time=now, group=group, topic=topic, broker=queue.broker_name,
                        queue=queue.queue_id, committed=committed, lowest=bounds[queue].first,
                        highest=bounds[queue].end,
                    )
                )  # fmt: skip
        return found


def watch_offsets(
    cluster: str | ClientOptions,
    wanted: Iterable[tuple[str, str]],
    seconds: float,
    every: float = 1.0,
) -> Iterator[list[OffsetSample]]:
    """Yield samples of groups' topics: one first, one per `every` seconds, one at the end.

    With 0 seconds there is one alone.
    """
    with OffsetSampler(cluster, wanted) as sampler:
        yield sampler.sample()
        deadline, left = time.monotonic() + seconds, seconds
        while left > 0:
            time.sleep(min(every, left))
            yield sampler.sample()
            left = deadline - time.monotonic()
