"""Runs the what-if of an estate part by part: in this process, or on Spark's executors."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pocketmq.balance.allocation import Average, AverageByCircle, ConsistentHash, Strategy
from pocketmq.balance.what_if import Numbers
from pocketmq.errors import AllocationInputInvalid, InvalidInput
from pocketmq.pipelines.fleet.estate import Estate, checked
from pocketmq.pipelines.fleet.events import FleetEvent, SwitchTo, check_events, described
from pocketmq.pipelines.fleet.part import measure
from pocketmq.pipelines.fleet.report import FleetReport, StepTally, StrategySummary, tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARED_BY_DEFAULT: tuple[Strategy, ...] = (Average(), AverageByCircle(), ConsistentHash())
GROUPS_AT_ONCE = 1024

Moment = Sequence[Numbers]  # of each group
PartAnswer = list[list[StepTally]]  # [strategy][moment]


def fleet(
    estate: Estate,
    strategies: Sequence[Strategy] = COMPARED_BY_DEFAULT,
    events: Sequence[FleetEvent] = (),
    *,
    spark: "SparkSession | None" = None,
    details: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> FleetReport:
    """Apply events to every group of an estate, under every strategy.

    With `spark` the parts are computed by its executors. `details` names a directory that gets one
    Parquet file per part with every group's numbers. `progress` is called with the number of groups
    done. Raises `InvalidInput` for an invalid estate, event or strategy.
    """
    began = perf_counter()
    checked(estate)
    check_events(estate.topics, list(events))
    if not strategies:
        raise InvalidInput("name at least one strategy to compare")
    if details is not None:
        Path(details).mkdir(parents=True, exist_ok=True)
    answer = partial(
        answer_part, tuple(strategies), tuple(events), None if details is None else str(details)
    )
    parts = list(enumerate(estate.parts(GROUPS_AT_ONCE)))
    answers = map(answer, parts) if spark is None else _on_spark(answer, parts, spark)
    merged: PartAnswer | None = None
    done = 0
    for (_, part), some in zip(parts, answers, strict=True):
        merged = some if merged is None else _added(merged, some)
        done += len(part.groups)
        if progress is not None:
            progress(done)
    assert merged is not None
    names = ["start", *map(described, events)]
    return FleetReport(
        groups=len(estate.groups),
        members=sum(len(group.member_ids()) for group in estate.groups.values()),
        pairs=sum(len(group.topics) for group in estate.groups.values()),
        strategies=[
            StrategySummary(
                strategy.name,
                [tallied.summary(name) for name, tallied in zip(names, moments, strict=True)],
            )
            for strategy, moments in zip(strategies, merged, strict=True)
        ],
        seconds=round(perf_counter() - began, 3),
    )


def answer_part(
    strategies: Sequence[Strategy],
    events: Sequence[FleetEvent],
    details: str | None,
    numbered: tuple[int, Estate],
) -> PartAnswer:
    """Compute one part under every strategy; runs wherever the part is sent."""
    number, estate = numbered
    groups = list(estate.groups)
    try:
        # One row of numbers per step, [strategy][step][group].
        measured: list[list[Moment]] = [
            list(zip(*measure(estate, strategy, events), strict=True)) for strategy in strategies
        ]
    except AllocationInputInvalid as problem:
        raise InvalidInput(str(problem)) from problem
    if details is not None:
        names = ["start", *map(described, events)]
        named = [(s.name, moments) for s, moments in zip(strategies, measured, strict=True)]
        _write_details(Path(details) / f"part-{number:05}.parquet", groups, names, named)
    return [
        [
            tally(groups, name, moment)
            for name, moment in zip(_in_use(strategy, events), moments, strict=True)
        ]
        for strategy, moments in zip(strategies, measured, strict=True)
    ]


def _in_use(strategy: Strategy, events: Sequence[FleetEvent]) -> Iterator[str]:
    """Yield the name of the strategy at each step."""
    yield strategy.name
    for event in events:
        if isinstance(event, SwitchTo):
            strategy = event.strategy
        yield strategy.name


def _on_spark(
    answer: Callable[[tuple[int, Estate]], PartAnswer],
    parts: list[tuple[int, Estate]],
    spark: "SparkSession",
) -> Iterator[PartAnswer]:
    context = spark.sparkContext
    slices = min(len(parts), context.defaultParallelism * 4)
    answers: Iterator[PartAnswer] = context.parallelize(parts, slices).map(answer).toLocalIterator()
    return answers


def _added(merged: PartAnswer, more: PartAnswer) -> PartAnswer:
    for moments, others in zip(merged, more, strict=True):
        for one, other in zip(moments, others, strict=True):
            one.add(other)
    return merged


def _write_details(
    path: Path, groups: list[str], names: list[str], measured: list[tuple[str, list[Moment]]]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    tables = []
    for strategy, moments in measured:
        for step, (name, moment) in enumerate(zip(names, moments, strict=True)):
            columns: dict[str, Any] = {
                "group": groups,
                "strategy": [strategy] * len(groups),
                "step": pa.array([step] * len(groups), pa.int32()),
                "event": [name] * len(groups),
            }
            columns |= zip(Numbers._fields, zip(*moment, strict=True), strict=True)
            tables.append(pa.table(columns))
    parquet.write_table(pa.concat_tables(tables), path, compression="zstd")
