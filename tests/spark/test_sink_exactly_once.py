"""Rows of a stream come once: real Spark, our broker, and everything that can break in between."""

import contextlib
import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import StringType, StructType

from pocketmq import Cluster
from pocketmq.errors import BatchDecided, LedgerUnusable, RowRefused
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.connections import forget_senders
from pocketmq.spark.exactly_once import TRANSACTION, ExactlyOnceWriter, Prepared
from pocketmq.spark.ledger import CommitLedger
from pocketmq.spark.schema import full_schema
from pocketmq.spark.sink_options import sink_plan
from tests.early import ENVIRONMENT, ROOT, begun_early
from tests.spark.faulty_sink import FAULTS, FaultySource
from tests.spark.topics import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 100.0
QUERY = "3d3e8b4e-0000-4000-8000-0123456789ab"
EACH = 5
"""Rows of each task."""
BODIES = StructType().add("body", StringType())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield a cluster of these tests' own: they kill what writes to it."""
    with Cluster() as running:
        yield running
    forget_senders()


def visible(cluster: Cluster, topic: str) -> Counter[str]:
    """Count what consumers of a topic see."""
    reader = batch_reader({"nameServer": cluster.address, "subscribe": topic}, full_schema())
    return Counter(row["body"].decode() for row in rows(reader, reader.partitions()))


def write_files(folder: Path, batches: int) -> dict[str, str]:
    """Write two files for each micro-batch, so that it has two tasks; gives the fault of each row."""
    folder.mkdir()
    expected: dict[str, str] = {}
    for number in range(2 * batches):
        batch = number // 2
        lines = [f"{batch}-{number % 2}-{row}" for row in range(EACH)]
        path = folder / f"{number:03}.txt"
        path.write_text("\n".join(lines))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        fault = FAULTS[batch] if batch < len(FAULTS) else FAULTS[0]
        expected |= dict.fromkeys(lines, fault)
    return expected


def run(
    spark: "SparkSession", folder: Path, work: Path, faults: Iterable[str], **options: str
) -> bool:
    """Run the stream until it has read all; False if it failed."""
    spark.dataSource.register(FaultySource)
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 2).load(str(folder))
    query = (
        lines.withColumnRenamed("value", "body")
        .writeStream.format("faulty")
        .option("checkpointLocation", str(work / "checkpoint"))
        .options(exactlyOnce="true", scratch=str(work))
        .options(faults=", ".join(faults), **options)
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(200)
    except StreamingQueryException:
        return False
    return True


@pytest.mark.timeout(300)  # eight starts of a query
def test_rows_come_once_whatever_breaks(
    spark: "SparkSession", cluster: Cluster, tmp_path: Path
) -> None:
    """One stream, a fault for each micro-batch, a restart after each that Spark cannot bear."""
    topic = cluster.create_topic("whatever-breaks", 2)
    fault_of = write_files(tmp_path / "in", len(FAULTS) + 1)
    where = {"nameServer": cluster.address, "topic": topic}
    runs = 1
    while not run(spark, tmp_path / "in", tmp_path, FAULTS, **where):
        runs += 1
        assert runs <= len(FAULTS)
    assert runs == len(FAULTS) - 1, "all but two of the faults end the query"
    ledger = str(tmp_path / "checkpoint" / "ledger")
    seen = visible(cluster, topic)
    assert {line: seen.pop(line, 0) for line in fault_of} == dict.fromkeys(fault_of, 1), fault_of
    assert not seen
    decided = {int(path.stem) for path in Path(ledger).glob("*/*.json")}
    assert decided == set(range(len(FAULTS) + 1))
    assert decided == {int(path.stem) for path in Path(ledger).glob("*/*.ended")}


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"still {what()}"
        time.sleep(0.05)


def _plan(
    cluster: Cluster, topic: str, ledger: str, schema: StructType | None = None, **more: str
) -> Any:
    options = {
        "nameServer": cluster.address,
        "topic": topic,
        "exactlyOnce": "true",
        "ledger": ledger,
        "requestTimeout": "30s",
        "retryTimeout": "5s",
        **more,
    }
    return sink_plan(options, schema or BODIES, overwrite=False, stream=True)


def _writer(cluster: Cluster, topic: str, ledger: str, **more: str) -> ExactlyOnceWriter:
    plan = _plan(cluster, topic, ledger, None, **more)
    writer = ExactlyOnceWriter(plan, plan.exactly_once)
    return pickle.loads(pickle.dumps(writer))  # type: ignore[no-any-return]


def _batches(*bodies: str) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(bodies)], names=["body"])


def test_rows_are_seen_after_the_decision_only(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("decided", 2)
    writer = _writer(cluster, topic, str(tmp_path))
    prepared = writer.prepare(writer._sender(), QUERY, 0, _batches(*"abc"), 0)
    assert visible(cluster, topic) == Counter()
    writer.commit([prepared], 0)
    assert visible(cluster, topic) == Counter("abc")
    writer.commit([prepared], 0)
    assert visible(cluster, topic) == Counter("abc"), "it had ended"


def test_of_two_drivers_the_first_that_decides_is_right(cluster: Cluster, tmp_path: Path) -> None:
    """And of two attempts of a task the one that Spark has chosen, however late the other is."""
    topic = cluster.create_topic("two-drivers", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    first = writer.prepare(writer._sender(), QUERY, 0, _batches("a"), 0)
    second = writer.prepare(writer._sender(), QUERY, 0, _batches("a"), 0)
    writer.commit([second, None], 0)
    writer.commit([first], 0)
    writer.abort([second], 0)
    assert visible(cluster, topic) == Counter("a")
    held = CommitLedger(str(tmp_path)).get(QUERY, 0)
    assert held is not None
    assert second.transaction.encode() in _marks(cluster, topic)[0]


def test_a_driver_waits_for_the_one_that_moves(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("locked", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    hasty = _writer(cluster, topic, str(tmp_path), retryTimeout="500ms")
    prepared = writer.prepare(writer._sender(), QUERY, 0, _batches("a"), 0)
    with (
        CommitLedger(str(tmp_path)).locked(QUERY, 1.0),
        pytest.raises(LedgerUnusable, match="check that the query is not running twice"),
    ):
        hasty.commit([prepared], 0)
    assert visible(cluster, topic) == Counter()
    writer.commit([prepared], 0)
    assert visible(cluster, topic) == Counter("a")


def test_what_is_aborted_before_a_decision_is_never_seen(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("aborted", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    prepared = writer.prepare(writer._sender(), QUERY, 0, _batches("a", "b"), 0)
    writer.abort([None, prepared], 0)
    writer.commit([writer.prepare(writer._sender(), QUERY, 1, _batches("c"), 0)], 1)
    with pytest.raises(BatchDecided):
        writer.commit([prepared], 0)
    assert visible(cluster, topic) == Counter("c")


def test_a_task_without_rows_decides_nothing(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("no-rows", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    prepared = writer.prepare(writer._sender(), QUERY, 0, iter(()), 0)
    assert prepared == Prepared(QUERY)
    writer.commit([prepared], 0)
    assert CommitLedger(str(tmp_path)).last(QUERY) == -1


def test_a_large_row_and_many_small_ones_come_in_order(cluster: Cluster, tmp_path: Path) -> None:
    """Those of one ordering key; rows over the size of a batch are chunks of their own."""
    topic = cluster.create_topic("ordered", 2)
    schema = StructType().add("body", StringType()).add("orderingKey", StringType())
    plan = _plan(cluster, topic, str(tmp_path), schema, batchSize="1k")
    writer = ExactlyOnceWriter(plan, plan.exactly_once)
    bodies = [f"{number}-" + "x" * (3000 if number == 7 else 30) for number in range(60)]
    batch = pa.record_batch([pa.array(bodies), pa.array(["k"] * 60)], names=["body", "orderingKey"])
    writer.commit([writer.prepare(writer._sender(), QUERY, 0, iter([batch]), 0)], 0)
    reader = batch_reader({"nameServer": cluster.address, "subscribe": topic}, full_schema())
    assert [row["body"].decode() for row in rows(reader, reader.partitions())] == bodies


def test_a_retry_topic_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    writer = _writer(cluster, "%RETRY%shop", str(tmp_path))
    with pytest.raises(RowRefused, match="which takes no batches"):
        writer.prepare(writer._sender(), QUERY, 0, _batches("a"), 0)


def _marks(cluster: Cluster, topic: str) -> list[bytes]:
    reader = batch_reader({"nameServer": cluster.address, "subscribe": topic}, full_schema())
    found = (dict(row["properties"]) for row in rows(reader, reader.partitions()))
    return [each[TRANSACTION].encode() for each in found]


CHILD = """
import os, sys
from pathlib import Path
from pocketmq.spark import spark_session
from pocketmq.spark.engine import java_process
from tests.spark.archive import quick_java
from tests.spark.test_sink_exactly_once import run

address, topic, folder, work, fault = sys.argv[1:]
quick = {"spark.driver.extraJavaOptions": quick_java() + " -Xss4m"}
spark = spark_session("killed", master="local[2,2]", config=quick)
java = str(java_process(spark))
try:
    run(spark, Path(folder), Path(work), [fault], nameServer=address, topic=topic, killed=java)
finally:
    os._exit(9)  # there is no Java to say goodbye to
"""


class Killed(NamedTuple):
    """What a driver left behind whose Java was killed, and the cluster it wrote to."""

    code: int
    log: str
    cluster: Cluster
    topic: str
    lines: dict[str, str]
    work: Path


def killed_amid_the_moves(folder: Path) -> Killed:
    """Run a driver in a session of its own, whose JVM is ended by SIGKILL."""
    cluster = Cluster().start()
    topic = cluster.create_topic("driver-killed", 2)
    lines = write_files(folder / "in", 2)
    arguments = [cluster.address, topic, str(folder / "in"), str(folder), "killed amid the moves"]
    log = folder / "log"
    with log.open("wb") as output:
        child = subprocess.run(
            [sys.executable, "-c", CHILD, *arguments],
            env=ENVIRONMENT, cwd=ROOT, stdout=output, stderr=output,
            timeout=450, check=False, start_new_session=True,
        )  # fmt: skip
    return Killed(child.returncode, log.read_text(), cluster, topic, lines, folder)


@pytest.mark.timeout(700)  # it starts a JVM of its own, which a busy machine takes long for
@begun_early(killed_amid_the_moves)
def test_a_driver_that_is_killed_amid_the_moves_loses_and_doubles_nothing(
    spark: "SparkSession", outcome: Killed
) -> None:
    """Its JVM, by SIGKILL, in a session of its own; another session goes on from the checkpoint."""
    code, log, cluster, topic, lines, work = outcome
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(cluster.stop)
        assert code == 9, log
        assert (work / "0-0").exists(), log
        assert not (work / "checkpoint" / "commits" / "0").exists()
        assert 0 < sum(visible(cluster, topic).values()) < len(lines)
        where = {"nameServer": cluster.address, "topic": topic}
        assert run(spark, work / "in", work, FAULTS[:1], **where)
        assert visible(cluster, topic) == Counter(lines.keys())
