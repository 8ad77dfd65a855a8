"""The demo's play, act by act until the group has settled, and the proof at its end."""

import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import msgspec

from pocketmq import Cluster
from pocketmq.cli.demo import spark_part
from pocketmq.cli.demo.cast import EVENTS, TOPIC, ConsumerProcess, Observer, Producers, write_lines
from pocketmq.cli.demo.view import DemoState, View
from pocketmq.cli.pipeline.health import print_report
from pocketmq.errors import MQError
from pocketmq.pipelines.health import HealthReport, Observations, examine
from pocketmq.pipelines.health.page import page

QUEUES = 8
BROKERS = ("broker-0", "broker-1")
_PATIENCE = 30.0


class Proof(msgspec.Struct, frozen=True):
    """The counts of messages and those missing, if any; `ingested` is None without Spark."""

    acknowledged: int
    consumed: int
    twice: int
    lost: list[int]
    ingested: int | None
    not_ingested: list[int]

    @property
    def holds(self) -> bool:
        """Whether every message sent was consumed, and copied if Spark took part."""
        return self.acknowledged > 0 and not self.lost and not self.not_ingested

    def lines(self) -> list[str]:
        """Return the result as sentences."""
        said = [
            f"{self.acknowledged:,} messages were sent and acknowledged",
            f"{self.consumed:,} of them were consumed, {self.twice:,} more than once",
        ]
        if self.ingested is not None:
            said.append(f"{self.ingested:,} of them are in Parquet files")
        if self.lost:
            said.append(f"LOST: {len(self.lost):,} were not consumed, such as {self.lost[:5]}")
        if self.not_ingested:
            said.append(
                f"NOT INGESTED: {len(self.not_ingested):,}, such as {self.not_ingested[:5]}"
            )
        if self.holds:
            said.append("proved: every message sent was consumed")
        return said


def prove(acknowledged: Sequence[int], consumed: Iterable[int], ingested: set[int] | None) -> Proof:
    """Compare the messages sent with those consumed and ingested."""
    sent, times = set(acknowledged), Counter(consumed)
    return Proof(
        acknowledged=len(sent),
        consumed=len(sent & times.keys()),
        twice=sum(times[number] > 1 for number in sent),
        lost=sorted(sent - times.keys()),
        ingested=None if ingested is None else len(sent & ingested),
        not_ingested=[] if ingested is None else sorted(sent - ingested),
    )


def run_play(out: Path, *, with_spark: bool, pace: float, rate: int) -> int:
    """Run the whole demo; return 0 if every message was consumed, else 1."""
    with _stderr_to(out / "demo.log"), ExitStack() as stack:
        spark = spark_part.SparkInBackground() if with_spark else None
        if spark is not None:
            stack.callback(spark.stop)
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="pocketmq-demo-data-"))
        cluster = stack.enter_context(Cluster(brokers=len(BROKERS), data=data, in_process=False))
        stage = Stage(cluster, pace)
        stack.callback(stage.clear)
        with View(stage.state) as view:
            try:
                stage.play(view, rate, at_first=None if spark is None else spark.warm_up_with)
            except KeyboardInterrupt:
                view.tell("stopping")
                raise
            report, proof = _afterwards(stage, view, out, spark)
    click.echo()
    print_report(report)
    click.echo()
    for line in proof.lines():
        click.secho(line, bold=line.startswith("proved"), fg=None if proof.holds else "red")
    click.echo(f"\nreport   {out / 'report.html'}")
    if proof.ingested is not None:
        click.echo(f"Parquet  {out / 'parquet' / 'data'}")
    elif with_spark:
        click.echo("Parquet  none: see above")
    return 0 if proof.holds else 1


class Stage:
    """The cluster, and the clients that act on it."""

    def __init__(self, cluster: Cluster, pace: float) -> None:
        self.cluster = cluster
        self.members: list[ConsumerProcess] = []
        self.up = dict.fromkeys(BROKERS, True)
        self._pace = pace
        self._sending: Producers | None = None
        self._observer: Observer | None = None
        self.acknowledged: list[int] = []
        self.ended = 0.0

    def state(self) -> DemoState:
        """Return the state to draw."""
        sent = 0 if self._sending is None else len(self._sending.acknowledged)
        numbers = {
            "sent": sent,
            "consumed": sum(len(member.numbers) for member in self.members),
            "lag": 0 if self._observer is None else self._observer.lag,
        }
        return DemoState(list(self.members), self.up, QUEUES, numbers)

    def play(self, view: View, rate: int, *, at_first: Callable[[str], None] | None = None) -> None:
        """Run all acts; `at_first` is called with the address once messages flow."""
        view.act("two brokers, eight queues each")
        self.cluster.create_topic(TOPIC, QUEUES)
        self.cluster.create_topic(EVENTS, 1)
        address = self.cluster.address
        with Producers(address, rate) as self._sending, Observer(address) as self._observer:
            self._act(view, "c1 and c2 form a group", self._join_two)
            if at_first is not None:
                at_first(address)
            self._act(view, "c3 joins", self._join)
            self._act(view, "c4 joins", self._join)
            self._act(view, "c2 leaves gracefully", self.members[1].leave)
            self._act(view, "c1 is killed without leaving the group", self.members[0].kill)
            self._act(view, "broker-1 is killed with its queues", self._lose_broker)
            self._act(view, "broker-1 restarts with everything it had stored", self._restore_broker)
            self._act(view, "c5 joins", self._join)
            view.act("the producers stop; the group consumes the rest")
            self._sending.stop()
            self.acknowledged = list(self._sending.acknowledged)
            if self._sending.unsure:
                view.tell(f"{self._sending.unsure} sends failed and are not counted")
            self._until(view, lambda: not self.missing())
            rounds = self._observer.rounds
            self._until(view, lambda: self._caught_up(rounds))
            self.ended = time.time()
        with ThreadPoolExecutor() as pool:
            list(
                pool.map(ConsumerProcess.leave, [member for member in self.members if member.there])
            )

    def _caught_up(self, rounds: int) -> bool:
        """Return whether the last messages are committed, and sampled since."""
        return self.observer.rounds > rounds and self.observer.lag == 0

    def missing(self) -> set[int]:
        """Return the acknowledged messages that are not consumed yet."""
        return set(self.acknowledged).difference(*(member.numbers for member in self.members))

    def clear(self) -> None:
        """Kill the members that still run."""
        for member in self.members:
            if member.there:
                member.kill()

    @property
    def observer(self) -> Observer:
        """The observer that sampled the offsets."""
        assert self._observer is not None
        return self._observer

    def _act(self, view: View, title: str, do: Callable[[], object]) -> None:
        began = time.monotonic()
        view.act(title)
        before = {queue: member.name for member in self.members for queue in member.holds}
        do()
        if self._until(view, self._settled):
            now = {queue: member.name for member in self.members for queue in member.holds}
            moved = sum(before[queue] != now[queue] for queue in now.keys() & before.keys())
            shares = ", ".join(f"{m.name} {len(m.holds)}" for m in self.members if m.there)
            view.tell(f"  settled after {time.monotonic() - began:.1f} s: {shares}; {moved} moved")
        time.sleep(self._pace)

    def _settled(self) -> bool:
        """Return whether every available queue has one owner, and the shares are even."""
        shares = [member.holds for member in self.members if member.there]
        queues = {f"{b}:{n}" for b, up in self.up.items() if up for n in range(QUEUES)}
        sizes = [len(share) for share in shares]
        held = frozenset().union(*shares)
        return held == queues and sum(sizes) == len(queues) and max(sizes) - min(sizes) <= 1

    def _until(self, view: View, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                view.tell(f"  not settled after {_PATIENCE:.0f} s")
                return False
            time.sleep(0.05)
        return True

    def _join(self) -> None:
        self.members.append(ConsumerProcess(f"c{len(self.members) + 1}", self.cluster.address))

    def _join_two(self) -> None:
        self._join()
        self._join()

    def _lose_broker(self) -> None:
        self.cluster.kill("broker-1")
        self.up["broker-1"] = False

    def _restore_broker(self) -> None:
        self.cluster.restart("broker-1")
        self.up["broker-1"] = True


def _afterwards(
    stage: Stage, view: View, out: Path, spark: spark_part.SparkInBackground | None
) -> tuple[HealthReport, Proof]:
    """Write the report and the Parquet files, and compare the counts."""
    address = stage.cluster.address
    deliveries = [delivery for member in stage.members for delivery in member.got]
    write_lines(out / "deliveries.jsonl", deliveries)
    write_lines(out / "offsets.jsonl", stage.observer.samples)
    observed = Observations([], stage.observer.samples, deliveries)
    ingested = None
    if spark is not None:
        view.act("Spark copies the messages to Parquet")
        try:
            session = spark.session()
            ingested = spark_part.ingest_orders(session, address, out / "parquet")
            view.act("Spark makes a report of the rebalances")
            observed = spark_part.events_by_spark(session, address, observed)
        except MQError as problem:
            view.tell(f"  continuing without Spark: {problem}")
    if not observed.events:
        view.act("the report of the rebalances is made")
        observed = spark_part.events_by_ourselves(address, observed)
    write_lines(out / "events.jsonl", observed.events)
    # The members leaving at the end is not a rebalance of the play.
    events = [event for event in observed.events if event.started < stage.ended]
    report = examine(Observations(events, observed.offsets, observed.deliveries, observed.bad))
    (out / "report.html").write_bytes(page(report, title="PocketMQ demo").encode())
    write_lines(out / "report.json", [report])
    view.tell("done")
    numbers = (number for member in stage.members for number in member.numbers)
    return report, prove(stage.acknowledged, numbers, ingested)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirect stderr of brokers, members and Java to a file: it would garble the display."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    lines = logging.StreamHandler()
    logging.getLogger("pocketmq").addHandler(lines)
    try:
        yield
    finally:
        logging.getLogger("pocketmq").removeHandler(lines)
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
