"""Both sides of a comparison with Kafka: one Spark session, two brokers, rows of a table."""

import time
from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame

from benchmarks._spark_cpu import spark_cpu, tree_cpu
from benchmarks.java.kafka import KafkaServers
from benchmarks.spark import Bench

TURNS = 3
WARM = 2


class Cost(NamedTuple):
    """Rows per second, and per CPU second of Spark and of the broker."""

    wall: float
    cpu: float


class Compared(NamedTuple):
    """One row of the table."""

    name: str
    ours: Cost
    kafka: Cost
    goal: float

    @property
    def ratio(self) -> float:
        return self.ours.cpu / self.kafka.cpu

    def shown(self) -> str:
        """Return the row for a terminal."""
        mark = "✓" if self.ratio >= self.goal else "✗"
        return (
            f"{self.name:34}{self.ours.cpu / 1e3:8,.0f}{self.kafka.cpu / 1e3:8,.0f}"
            f"{self.ratio:8.2f}{self.goal:7.1f} {mark}{self.ours.wall / 1e3:9,.0f}"
            f"{self.kafka.wall / 1e3:8,.0f}"
        )


class Pair:
    """One session, both brokers, and what was measured."""

    def __init__(self, bench: Bench, kafka: KafkaServers) -> None:
        self.bench, self.kafka = bench, kafka
        self.broker = kafka.children[0].pid
        self.compared: list[Compared] = []
        self.once: list[tuple[str, float]] = []
        """Names of streams, and their rows per second of a micro-batch."""
        self.live: list[tuple[str, float, float]] = []
        """Names of streams, and the duration and CPU of a small micro-batch, in ms."""

    def ours(self, topic: str, schema: str | None = None) -> DataFrame:
        reader = self.bench.spark.read.format("rocketmq").option("nameServer", self.bench.address)
        return (reader.schema(schema) if schema else reader).option("subscribe", topic).load()

    def theirs(self, topic: str, **options: str) -> DataFrame:
        reader = self.bench.spark.read.format("kafka").options(**options)
        reader = reader.option("kafka.bootstrap.servers", self.kafka.broker)
        return reader.option("subscribe", topic).load()

    def stream(
        self, topic: str, starting: str, *, ours: bool, schema: str | None = None, **options: str
    ) -> DataFrame:
        name, option, address = (
            ("rocketmq", "nameServer", self.bench.address)
            if ours
            else ("kafka", "kafka.bootstrap.servers", self.kafka.broker)
        )
        reader = self.bench.spark.readStream.format(name).options(**options)
        reader = reader.option(option, address)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.option("subscribe", topic).option("startingOffsets", starting).load()

    def measure(self, work: Callable[[], None], broker: int, rows: int) -> Cost:
        before = spark_cpu(self.bench.java) + tree_cpu(broker)
        started = time.perf_counter()
        work()
        wall = time.perf_counter() - started
        return Cost(rows / wall, rows / (spark_cpu(self.bench.java) + tree_cpu(broker) - before))

    def compare(
        self,
        name: str,
        ours: Callable[[], None],
        theirs: dict[str, Callable[[], None]],
        rows: int,
        goals: tuple[float, ...],
    ) -> None:
        """Print a row for each way of Kafka's."""
        works = {"ours": (ours, self.bench.broker)}
        works |= {key: (work, self.broker) for key, work in theirs.items()}
        for _ in range(WARM):
            for work, _ in works.values():
                work()
        runs = [[self.measure(*work, rows) for work in works.values()] for _ in range(TURNS)]
        mine, *others = [
            Cost(*map(max, zip(*each, strict=True))) for each in zip(*runs, strict=True)
        ]
        for key, other, goal in zip(theirs, others, goals, strict=True):
            told = name if key == "Kafka" else f"{name}, {key}"
            self.compared.append(Compared(told, mine, other, goal))
            print(self.compared[-1].shown(), flush=True)
