"""The report of topics' observations, computed by Spark: each group where its lines are gathered.

The driver holds the finished reports only, so the events of thousands of groups need no more memory
there than those of one. Lines travel as they were written: what decodes them is the same as for
files, and unreadable ones are gathered with their place, as if they were a group.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from pocketmq.balance.story.recorded import QUIET
from pocketmq.balance.story.whole_events import whole_events
from pocketmq.pipelines.health.observed import (
    DECODERS,
    UNREADABLE,
    BadLine,
    Observations,
    first_bad,
    incomplete,
    topic_frame,
    topic_lines,
)
from pocketmq.pipelines.health.report import (
    RETRY,
    GroupHealth,
    HealthReport,
    check_found,
    examine_group,
)

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import Row, SparkSession

Key = str | None
"""A group's name; None for lines that could not be read."""
Kept = tuple[str, bytes]
"""The kind of an observation and its line; for one that could not be read, place and reason."""


def examine_topics(
    spark: "SparkSession",
    observed: Observations,
    *,
    name_server: str,
    topics: Mapping[str, str],
    options: Mapping[str, str] | None = None,
    groups: Collection[str] = (),
    quiet: float = QUIET,
) -> HealthReport:
    """Return the report of observations in topics, and of those read elsewhere.

    `topics` names those of `events`, `offsets` and `deliveries`; `options` are further options of
    the source, such as credentials. Otherwise as `examine`.
    """
    reach = {"nameServer": name_server, **(options or {})}
    context = spark.sparkContext
    lines: RDD[tuple[Key, Kept]] = context.parallelize(list(_encoded(observed)))
    for kind, topic in topics.items():
        rows = topic_frame(spark, reach, topic).rdd
        lines = lines.union(rows.mapPartitions(partial(_keyed, kind, topic, frozenset(groups))))
    recorded = observed.deliveries is not None or "deliveries" in topics
    parts = context.defaultParallelism * 4  # groups differ in size
    finished = lines.groupByKey(parts).flatMap(partial(_finished, quiet, recorded=recorded))
    found: dict[str, GroupHealth] = {}
    bad = list(observed.bad)
    for name, answer in finished.toLocalIterator():
        if name is None:
            bad += msgspec.msgpack.decode(answer, type=list[BadLine])
        else:
            found[name] = msgspec.msgpack.decode(answer, type=GroupHealth)
    bad = first_bad(bad)
    wanted = list(groups) or sorted(found)
    check_found(wanted, found, bad)
    return HealthReport([found[name] for name in wanted], bad)


def _keyed(
    kind: str, topic: str, wanted: frozenset[str], rows: "Iterable[Row]"
) -> Iterator[tuple[Key, Kept]]:
    """Yield the lines of a topic's messages, each with its group."""
    decode = DECODERS[kind]
    for where, line in topic_lines(topic, rows):
        try:
            group: str = decode(line).group
        except UNREADABLE as problem:
            yield None, (where, str(problem).encode("utf-8", "backslashreplace"))
            continue
        if not wanted or group in wanted:
            yield group, (kind, line)


def _encoded(observed: Observations) -> Iterator[tuple[Key, Kept]]:
    """Yield what was read elsewhere as lines."""
    kinds = (
        ("events", observed.events),
        ("offsets", observed.offsets),
        ("deliveries", observed.deliveries or ()),
    )
    for kind, values in kinds:
        for value in values:
            yield value.group, (kind, msgspec.json.encode(value))


def _finished(
    quiet: float, gathered: tuple[Key, Iterable[Kept]], *, recorded: bool
) -> Iterator[tuple[Key, bytes]]:
    """Yield one group's report, if it has events, and what could not be read."""
    group, lines = gathered
    if group is None:
        bad = [BadLine(where, reason.decode()) for where, reason in lines]
        yield None, msgspec.msgpack.encode(first_bad(bad))
        return
    found: dict[str, list[Any]] = {kind: [] for kind in DECODERS}
    for kind, line in lines:
        found[kind].append(DECODERS[kind](line))
    events, alone = whole_events(found["events"])
    if alone:
        yield None, msgspec.msgpack.encode(first_bad([incomplete(each) for each in alone]))
    events = [event for event in events if not event.topic.startswith(RETRY)]
    if events:
        delivered = found["deliveries"] if recorded else None
        health = examine_group(group, events, found["offsets"], delivered, quiet)
        yield group, msgspec.msgpack.encode(health)
