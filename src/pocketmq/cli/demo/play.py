"""The demo's play: two groups go through the same acts, each act until both have settled.

Both consume the same topic, so the same messages reach both; they differ in the strategy alone.
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from pocketmq import Cluster
from pocketmq.cli.demo import spark_part
from pocketmq.cli.demo.cast import DemoGroup, Observer, Producers, prepare_members, write_lines
from pocketmq.cli.demo.member import EVENTS, TOPIC
from pocketmq.cli.demo.outcome import FAILED, GroupResult, Proof, compared, comparison_html, prove
from pocketmq.cli.demo.repeats import BrokerKilled, Crashes, MemberKilled, waits
from pocketmq.cli.demo.view import DemoState, View
from pocketmq.cli.output import TableColumn, numbers, print_table
from pocketmq.errors import MQError
from pocketmq.pipelines.health import DeliveryRecord, Observations, examine
from pocketmq.pipelines.health.page import page

QUEUES = 8
BROKERS = ("broker-0", "broker-1")
STRATEGIES = ("AVG", "STICKY")
_PATIENCE = 60.0
_BUSY = 1.0
"""Seconds by which a sleep of the play may be too long before it says so."""


class DemoOutcome(NamedTuple):
    """What is shown when the play is over."""

    results: list[GroupResult]
    proof: Proof


def run_play(out: Path, *, with_spark: bool, pace: float, rate: int) -> int:
    """Run the whole demo; return 0 if its claims are proved, else 1."""
    with _stderr_to(out / "demo.log"), ExitStack() as stack:
        prepare_members()
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
            results, proof = _afterwards(stage, view, out, spark)
    click.echo()
    columns = [TableColumn(""), *numbers(*(result.strategy for result in results))]
    print_table("side by side, since both groups had formed", columns, compared(results))
    click.echo()
    for line in proof.lines():
        bad = line.startswith(FAILED)
        click.secho(line, bold=bad or line.startswith("proved"), fg="red" if bad else None)
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
        self.groups = [DemoGroup(strategy, cluster.address) for strategy in STRATEGIES]
        self.up = dict.fromkeys(BROKERS, True)
        self._pace = pace
        self._sending: Producers | None = None
        self._observer: Observer | None = None
        self.acknowledged: list[int] = []
        self.crashes = Crashes()
        self._delayed = 0.0
        self.formed = self.ended = 0.0
        """When both groups had formed, and when all messages were consumed."""

    def state(self) -> DemoState:
        """Return the state to draw."""
        sent = 0 if self._sending is None else len(self._sending.acknowledged)
        lag = {} if self._observer is None else self._observer.lag
        return DemoState(self.groups, self.up, QUEUES, sent=sent, lag=lag)

    def play(self, view: View, rate: int, *, at_first: Callable[[str], None] | None = None) -> None:
        """Run all acts; `at_first` is called with the address once messages flow."""
        view.act("two brokers with eight queues each; two groups: AVG, STICKY; handlers of 20 ms")
        self.cluster.create_topic(TOPIC, QUEUES)
        self.cluster.create_topic(EVENTS, 1)
        address = self.cluster.address
        self._observer = Observer(address, [group.name for group in self.groups])
        with Producers(address, rate) as self._sending, self._observer:
            self._act(view, "c1 and c2 form each group", self._join_two)
            self.formed = time.time()
            if at_first is not None:
                at_first(address)
            self._act(view, "c3 joins", self._join)
            self._act(view, "c4 joins", self._join)
            self._act(view, "c2 leaves gracefully", self._leave)
            self._act(view, "c1 is killed without leaving the group", self._kill)
            self._act(view, "broker-1 is killed with its queues", self._lose_broker)
            self._act(view, "broker-1 restarts with everything it had stored", self._restore_broker)
            self._act(view, "c5 joins", self._join)
            view.act("the producers stop; the groups consume the rest")
            self._sending.stop()
            self.acknowledged = list(self._sending.acknowledged)
            if self._sending.unsure:
                view.tell(f"{self._sending.unsure} sends failed and are not counted")
            self._until(view, self._all_consumed)
            rounds = self._observer.rounds
            self._until(view, lambda: self._caught_up(rounds))
            self.ended = time.time()
        if self._delayed > _BUSY:
            view.tell(f"this machine is busy: the play itself was delayed by {self._delayed:.1f} s")
        self._all_do([member.leave for group in self.groups for member in group.there])

    def _all_consumed(self) -> bool:
        return not any(group.missing(self.acknowledged) for group in self.groups)

    def _caught_up(self, rounds: int) -> bool:
        """Return whether the last messages are committed, and sampled since."""
        return self.observer.rounds > rounds and not any(self.observer.lag.values())

    def clear(self) -> None:
        """Kill the members that still run."""
        for group in self.groups:
            for member in group.there:
                member.kill()

    @property
    def observer(self) -> Observer:
        """The observer that sampled the offsets."""
        assert self._observer is not None
        return self._observer

    def _act(self, view: View, title: str, do: Callable[[], object]) -> None:
        began = time.monotonic()
        view.act(title)
        before = {group.strategy: group.owners() for group in self.groups}
        do()
        unsettled = list(self.groups)

        def all_settled() -> bool:
            queues = {f"{b}:{n}" for b, up in self.up.items() if up for n in range(QUEUES)}
            for group in [group for group in unsettled if group.settled(queues)]:
                unsettled.remove(group)
                took = time.monotonic() - began
                view.tell(f"  {_settled(group, before[group.strategy], took)}")
            return not unsettled

        self._until(view, all_settled)
        self._sleep(self._pace)

    def _until(self, view: View, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                view.tell(f"  not settled after {_PATIENCE:.0f} s")
                return
            self._sleep(0.02)

    def _sleep(self, seconds: float) -> None:
        began = time.monotonic()
        time.sleep(seconds)
        self._delayed = max(self._delayed, time.monotonic() - began - seconds)

    @staticmethod
    def _all_do(calls: list[Callable[[], None]]) -> None:
        """Call all at the same time, so that what one group meets the other meets, too."""
        with ThreadPoolExecutor(max_workers=len(calls)) as pool:
            for done in [pool.submit(call) for call in calls]:
                done.result()

    def _join(self) -> None:
        for group in self.groups:
            group.join()

    def _join_two(self) -> None:
        self._join()
        self._join()

    def _leave(self) -> None:
        self._all_do([group.members[1].leave for group in self.groups])

    def _kill(self) -> None:
        victims = [group.members[0] for group in self.groups]
        committed = self.observer.committed()
        self._all_do([member.kill for member in victims])
        killed = tuple(
            MemberKilled(member.client_id, member.ended_at, committed[group.name])
            for group, member in zip(self.groups, victims, strict=True)
        )
        self.crashes = Crashes(killed, self.crashes.brokers)

    def _lose_broker(self) -> None:
        at = time.time()
        self.cluster.kill("broker-1")
        self.up["broker-1"] = False
        lost = BrokerKilled("broker-1", at, float("inf"))
        self.crashes = Crashes(self.crashes.members, (lost,))

    def _restore_broker(self) -> None:
        [lost] = self.crashes.brokers
        back = BrokerKilled(lost.broker, lost.at, time.time())
        self.crashes = Crashes(self.crashes.members, (back,))
        self.cluster.restart("broker-1")
        self.up["broker-1"] = True


def _settled(group: DemoGroup, before: dict[str, str], took: float) -> str:
    now = group.owners()
    moved = sum(before[queue] != now[queue] for queue in now.keys() & before.keys())
    return f"{group.strategy:6} settled after {took:.1f} s: {group.shares()}; {moved} moved"


def _afterwards(
    stage: Stage, view: View, out: Path, spark: spark_part.SparkInBackground | None
) -> DemoOutcome:
    """Write the report and the Parquet files, and compare the counts."""
    address, crashes = stage.cluster.address, stage.crashes
    given = {group.strategy: group.deliveries() for group in stage.groups}
    deliveries: list[DeliveryRecord] = [one for of_group in given.values() for one in of_group]
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
    proof = prove(stage.acknowledged, given, crashes, ingested)
    # The members leaving at the end is not a rebalance of the play.
    events = [event for event in observed.events if event.started < stage.ended]
    report = examine(
        Observations(events, observed.offsets, observed.deliveries, observed.bad),
        groups=[group.name for group in stage.groups],
    )
    results = [
        GroupResult(
            strategy=one.strategy,
            health=health,
            repeats=one.repeats,
            waits=waits(of_group, crashes, stage.formed),
            since=stage.formed,
        )
        for one, health, of_group in zip(proof.groups, report.groups, given.values(), strict=True)
    ]
    text = page(report, title="PocketMQ demo", first_section=comparison_html(results))
    (out / "report.html").write_bytes(text.encode())
    write_lines(out / "report.json", [report])
    view.tell("done")
    return DemoOutcome(results, proof)


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
