"""Run the what-if of an estate part by part: on this machine's cores, or on Spark's executors."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pocketmq.balance.allocation import Average, AverageByCircle, ConsistentHash, Strategy
from pocketmq.errors import AllocationInputInvalid, InvalidInput
from pocketmq.pipelines.fleet.estate import Estate, checked
from pocketmq.pipelines.fleet.events import FleetEvent, check_events, described
from pocketmq.pipelines.fleet.measures import NUMBERS, Measured, measure
from pocketmq.pipelines.fleet.part import make_part
from pocketmq.pipelines.fleet.report import FleetReport, StrategySummary, Tally, tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARED_BY_DEFAULT: tuple[Strategy, ...] = (Average(), AverageByCircle(), ConsistentHash())
GROUPS_AT_ONCE = 1024

PartAnswer = list[list[Tally]]  # [strategy][moment]


def fleet(
    estate: Estate,
    strategies: Sequence[Strategy] = COMPARED_BY_DEFAULT,
    events: Sequence[FleetEvent] = (),
    *,
    spark: "SparkSession | None" = None,
    details: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> FleetReport:
    """Let events happen to every group of an estate, under every strategy.

    With `spark` the parts are computed by its executors. `details` names a directory that gets one
    Parquet file a part with every group's numbers. `progress` is told how many groups are done.
    Raises `InvalidInput` for an estate, event or strategy that cannot be.
    """
    began = perf_counter()
    checked(estate)
    check_events(estate.topics, list(events))
    if not strategies:
        raise InvalidInput("there is no strategy to compare")
    if details is not None:
        Path(details).mkdir(parents=True, exist_ok=True)
    answer = partial(
        answer_part, tuple(strategies), tuple(events), None if details is None else str(details)
    )
    parts = list(enumerate(estate.parts(GROUPS_AT_ONCE)))
    answers = _locally(answer, parts) if spark is None else _on_spark(answer, parts, spark)
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
    part = make_part(estate, events)
    try:
        measured = [measure(part, strategy, events) for strategy in strategies]
    except AllocationInputInvalid as problem:
        raise InvalidInput(str(problem)) from problem
    if details is not None:
        names = ["start", *map(described, events)]
        _write_details(Path(details) / f"part-{number:05}.parquet", part.groups, names, measured)
    return [[tally(part.groups, one) for one in moments] for moments in measured]


def _locally(
    answer: Callable[[tuple[int, Estate]], PartAnswer], parts: list[tuple[int, Estate]]
) -> Iterator[PartAnswer]:
    """Use threads: the work is in numpy, which lets the others run."""
    if len(parts) == 1:
        yield answer(parts[0])
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            yield from pool.map(answer, parts)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _on_spark(
    answer: Callable[[tuple[int, Estate]], PartAnswer],
    parts: list[tuple[int, Estate]],
    spark: "SparkSession",
) -> Iterable[PartAnswer]:
    context = spark.sparkContext
    slices = min(len(parts), context.defaultParallelism * 4)
    answers: Iterable[PartAnswer] = context.parallelize(parts, slices).map(answer).toLocalIterator()
    return answers


def _added(merged: PartAnswer, more: PartAnswer) -> PartAnswer:
    for moments, others in zip(merged, more, strict=True):
        for one, other in zip(moments, others, strict=True):
            one.add(other)
    return merged


def _write_details(
    path: Path, groups: list[str], names: list[str], measured: list[list[Measured]]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    tables = []
    for moments in measured:
        first = moments[0].strategy
        for step, (name, one) in enumerate(zip(names, moments, strict=True)):
            columns: dict[str, Any] = {
                "group": groups,
                "strategy": [first] * len(groups),
                "step": pa.array([step] * len(groups), pa.int32()),
                "event": [name] * len(groups),
            }
            columns |= {number: getattr(one, number) for number in NUMBERS}
            tables.append(pa.table(columns))
    parquet.write_table(pa.concat_tables(tables), path, compression="zstd")
