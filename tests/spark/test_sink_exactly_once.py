"""Rows of a stream come once: real Spark, our broker, and everything that can break in between."""

import contextlib
import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import StringType, StructType

from pocketmq import Cluster, Message, MessageQueue, SendReceipt
from pocketmq.blocking.record_sender import RecordSender
from pocketmq.client.options import ClientOptions
from pocketmq.embedded.settings import Setting
from pocketmq.errors import ConnectionLost, SendFailed
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.check_backs import answering
from pocketmq.spark.connections import forget_senders
from pocketmq.spark.exactly_once import ExactlyOnceWriter, Prepared
from pocketmq.spark.ledger import BatchDecision, CommitLedger
from pocketmq.spark.schema import full_schema
from pocketmq.spark.sink_options import sink_plan
from tests.early import ENVIRONMENT, ROOT, begun_early
from tests.spark.faulty_sink import FAULTS, FaultySource
from tests.spark.topics import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "3d3e8b4e-0000-4000-8000-0123456789ab"
PATIENCE = 100.0
ASKING_SOON: dict[str, Setting] = {
    "transactionTimeOut": 500,
    "transactionCheckInterval": 200,
    "transactionCheckMax": 10_000,
}
EACH = 5
"""Rows of each task."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Give a cluster whose broker asks soon about what it knows nothing of."""
    with Cluster(config=ASKING_SOON) as running:
        yield running
    forget_senders()


def visible(cluster: Cluster, topic: str) -> Counter[str]:
    """Count what consumers of a topic see."""
    reader = batch_reader({"nameServer": cluster.address, "subscribe": topic}, full_schema())
    return Counter(row["body"].decode() for row in rows(reader, reader.partitions()))


def open_halves(cluster: Cluster) -> int:
    """Count the half messages whose end the broker does not know."""
    (member,) = cluster._cluster._supervisor.members.values()
    halves = member.runner._broker.state.halves  # type: ignore[union-attr]
    queue = halves.queue
    return 0 if queue is None else int(halves.states.open_count(queue.next_offset))


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"still {what()}"
        time.sleep(0.05)


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
    plan = _plan(cluster, topic, ledger)
    with answering(ClientOptions(name_servers=cluster.address), group=plan.group, ledger=ledger):
        until(lambda: open_halves(cluster) == 0, lambda: f"{open_halves(cluster)} are open")
    seen = visible(cluster, topic)
    assert {line: seen.pop(line, 0) for line in fault_of} == dict.fromkeys(fault_of, 1), fault_of
    assert not seen
    decided = {int(path.stem) for path in Path(ledger).glob("*/*.json")}
    assert decided == set(range(len(FAULTS) + 1))
    unfinished = decided - {int(path.stem) for path in Path(ledger).glob("*/*.ended")}
    assert {FAULTS[batch] for batch in unfinished if batch < len(FAULTS)} >= {
        "commit fails half-way",
        "killed after the decision",
        "killed amid the ends",
    }


def _plan(cluster: Cluster, topic: str, ledger: str) -> Any:
    options = {
        "nameServer": cluster.address,
        "topic": topic,
        "exactlyOnce": "true",
        "ledger": ledger,
        "retryTimeout": "5s",
    }
    return sink_plan(options, StructType().add("body", StringType()), overwrite=False, stream=True)


def _writer(cluster: Cluster, topic: str, ledger: str) -> ExactlyOnceWriter:
    plan = _plan(cluster, topic, ledger)
    writer = ExactlyOnceWriter(plan, plan.exactly_once)
    return pickle.loads(pickle.dumps(writer))  # type: ignore[no-any-return]


def _batches(*bodies: str) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(bodies)], names=["body"])


class Forgetful(RecordSender):
    """A sender on whose first answer the connection breaks: the half message is stored."""

    broken = 0

    def submit_half(
        self,
        message: Message,
        message_id: str,
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> Future[SendReceipt]:
        answer = super().submit_half(message, message_id, queue=queue, timeout=timeout)
        if self.broken:
            return answer
        self.broken += 1
        answer.result(10)
        lost: Future[SendReceipt] = Future()
        cause = ConnectionLost("127.0.0.1:1", "closed by the peer")
        lost.set_exception(SendFailed(message.topic, None, 1, 0.1, cause))
        return lost


def test_a_half_message_whose_answer_got_lost_counts_once(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("lost-answer", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    sender = writer._sender()
    options = ClientOptions(name_servers=cluster.address, instance_name="forgetful")
    with Forgetful(group=writer.plan.group, options=options) as forgetful:
        prepared = writer.prepare(forgetful, QUERY, 0, _batches("a", "b", "c"), 0)
    assert len(prepared.doubtful) == 1
    assert open_halves(cluster) == 4
    writer.commit([prepared], 0)
    until(lambda: open_halves(cluster) == 0, lambda: f"{open_halves(cluster)} are open")
    assert visible(cluster, topic) == Counter("abc")
    assert CommitLedger(str(tmp_path)).get(QUERY, 0) == BatchDecision(
        transactions=[prepared.transaction], doubtful=list(prepared.doubtful)
    )
    assert sender is writer._sender(), "a process keeps its sender"


def test_a_second_decision_rolls_its_own_half_messages_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Two drivers run the same micro-batch: the first that decides is right."""
    topic = cluster.create_topic("two-drivers", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    first = writer.prepare(writer._sender(), QUERY, 0, _batches("a"), 0)
    second = writer.prepare(writer._sender(), QUERY, 0, _batches("a"), 0)
    writer.commit([second, None], 0)
    writer.commit([first], 0)
    writer.abort([second], 0)
    assert open_halves(cluster) == 0
    assert visible(cluster, topic) == Counter("a")


def test_what_is_aborted_before_a_decision_is_rolled_back(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("aborted", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    prepared = writer.prepare(writer._sender(), QUERY, 0, _batches("a", "b"), 0)
    writer.abort([None, prepared], 0)
    assert open_halves(cluster) == 0
    assert visible(cluster, topic) == Counter()
    assert CommitLedger(str(tmp_path)).last(QUERY) == -1


def test_a_task_without_rows_decides_nothing(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("no-rows", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    prepared = writer.prepare(writer._sender(), QUERY, 0, iter(()), 0)
    assert prepared == Prepared(QUERY)
    writer.commit([prepared], 0)
    assert CommitLedger(str(tmp_path)).last(QUERY) == -1


def test_what_a_broker_is_told_is_what_the_ledger_says(cluster: Cluster, tmp_path: Path) -> None:
    """Half messages of an attempt that nobody decided wait until a later batch is decided."""
    topic = cluster.create_topic("asked", 1)
    writer = _writer(cluster, topic, str(tmp_path))
    lost = writer.prepare(writer._sender(), QUERY, 3, _batches("lost"), 0)
    won = writer.prepare(writer._sender(), QUERY, 3, _batches("won"), 0)
    ledger = CommitLedger(str(tmp_path))
    ledger.decide(QUERY, 3, BatchDecision(transactions=[won.transaction]))
    until(lambda: open_halves(cluster) == 0, lambda: f"{open_halves(cluster)} are open")
    assert visible(cluster, topic) == Counter(["won"])
    assert lost.transaction
    early = writer.prepare(writer._sender(), QUERY, 4, _batches("early"), 0)
    ledger.decide(QUERY, 5, BatchDecision(transactions=["x"]))
    until(lambda: open_halves(cluster) == 0, lambda: f"{open_halves(cluster)} are open")
    assert visible(cluster, topic) == Counter(["won"])
    assert early.transaction


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


def killed_amid_the_ends(folder: Path) -> Killed:
    """Run a driver in a session of its own, whose JVM is ended by SIGKILL."""
    cluster = Cluster(config=ASKING_SOON).start()
    topic = cluster.create_topic("driver-killed", 2)
    lines = write_files(folder / "in", 2)
    arguments = [cluster.address, topic, str(folder / "in"), str(folder), "killed amid the ends"]
    log = folder / "log"
    with log.open("wb") as output:
        child = subprocess.run(
            [sys.executable, "-c", CHILD, *arguments],
            env=ENVIRONMENT, cwd=ROOT, stdout=output, stderr=output,
            timeout=240, check=False, start_new_session=True,
        )  # fmt: skip
    return Killed(child.returncode, log.read_text(), cluster, topic, lines, folder)


@pytest.mark.timeout(300)  # it starts a JVM of its own, which a busy machine takes long for
@begun_early(killed_amid_the_ends)
def test_a_driver_that_is_killed_amid_the_ends_loses_and_doubles_nothing(
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
        until(lambda: open_halves(cluster) == 0, lambda: f"{open_halves(cluster)} are open")
        assert visible(cluster, topic) == Counter(lines.keys())
