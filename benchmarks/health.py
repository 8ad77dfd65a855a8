"""Health of many groups: Spark, which examines each group where its events are, beside one process.

python -m benchmarks.health [--full] [--changes]

Each group has members that join and leave every 30 seconds, and 16 queues. `--full` is 1,000 groups
of 100 rebalances, otherwise it is a tenth of them. With `--changes` members publish what changed.
Times are from the topic to the finished report, without Spark's own start.
"""

import random
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from pocketmq import Cluster, Message, MessageQueue, Producer, RebalanceEvent
from pocketmq.model import sort_queues
from pocketmq.model.rebalance_event import WHOLE_EVERY, EventWriter, read_event
from pocketmq.pipelines.health import Observations, examine
from pocketmq.pipelines.health.by_group import examine_topics
from pocketmq.pipelines.health.observed import read_topics
from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

REBALANCES = 100
MEMBERS = 6
QUEUES = [MessageQueue("orders", f"broker-{number % 2}", number // 2) for number in range(16)]


def events_of(group: str, seed: int) -> Iterator[RebalanceEvent]:
    """Yield what the members of a group tell of its rebalances."""
    chance = random.Random(seed)
    ids = [f"10.0.{seed % 250}.{number}@{seed}" for number in range(MEMBERS)]
    alive = {ids[0]}
    held: dict[str, tuple[MessageQueue, ...]] = {}
    for number in range(REBALANCES):
        alive ^= {chance.choice(ids)} if number else set()
        alive = alive or {ids[0]}
        order = sorted(alive)
        now = {member: tuple(QUEUES[place :: len(order)]) for place, member in enumerate(order)}
        for member in sorted(held.keys() | now.keys()):
            before, after = held.get(member, ()), now.get(member, ())
            yield RebalanceEvent(
                group=group, client_id=member, topic="orders", strategy="AVG_BY_CIRCLE",
                trigger="members changed", started=1.8e9 + 30 * number + chance.random() / 10,
                members=tuple(order), queues=tuple(QUEUES), before=before, after=after,
                revoked=tuple(queue for queue in before if queue not in after),
                assigned={
                    f"{queue.broker_name}:{queue.queue_id}": 0
                    for queue in after if queue not in before
                },
            )  # fmt: skip
        held = now


def fill(cluster: Cluster, topic: str, groups: int, *, changes: bool) -> tuple[int, int]:
    """Send the events of groups; return how many, and their bytes."""
    count = size = 0
    with Producer(cluster.address, group="members") as producer:
        for number in range(groups):
            whole_every = WHOLE_EVERY if changes else 1
            writers: dict[str, EventWriter] = defaultdict(partial(EventWriter, whole_every))
            for event in events_of(f"group-{number:04}", number):
                line = writers[event.client_id].written(event)
                producer.submit(Message(topic, line))
                count += 1
                size += len(line)
        producer.flush()
    return count, size


def moves_of(queues: int, members: int, count: int) -> Iterator[RebalanceEvent]:
    """Yield what the members of a large group tell when single queues move."""
    every = sort_queues([MessageQueue("orders", f"broker-{n % 4}", n // 4) for n in range(queues)])
    ids = [f"10.0.0.{number}@1" for number in range(members)]
    held = {member: tuple(every[place::members]) for place, member in enumerate(ids)}
    for number in range(count):
        giver, heir = ids[number % members], ids[(number + 1) % members]
        moved, *kept = held[giver]
        for member, after in ((giver, kept), (heir, sort_queues([*held[heir], moved]))):
            yield RebalanceEvent(
                group="large", client_id=member, topic="orders", strategy="STICKY", trigger="timer",
                started=1.8e9 + 30 * number + (member == heir), members=tuple(ids),
                queues=tuple(every), before=held[member], after=tuple(after),
            )  # fmt: skip
            held[member] = tuple(after)


def compare_forms() -> None:
    """Print what the events of one large group take, whole and as changes."""
    events = list(moves_of(1024, 16, 500))
    print(f"one group, 1,024 queues, 16 members, {len(events):,} events, each of one queue")
    for form, whole_every in (("whole", 1), ("changes", WHOLE_EVERY)):
        writers: dict[str, EventWriter] = defaultdict(partial(EventWriter, whole_every))
        lines = [writers[event.client_id].written(event) for event in events]
        used = _processor()
        examine(Observations([read_event(line) for line in lines]))
        print(f"{form:<40}{sum(map(len, lines)) / 1e6:>8.1f} MB{_processor() - used:>6.2f} CPU s")


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    compare_forms()
    groups, changes = 1_000 if "--full" in sys.argv else 100, "--changes" in sys.argv
    with Cluster(in_process=False) as cluster:
        events = cluster.create_topic("events", queues=8)
        few = cluster.create_topic("few", queues=8)
        count, size = fill(cluster, events, groups, changes=changes)
        fill(cluster, few, groups // 10, changes=changes)
        spark = spark_session("pocketmq health", master="local[2]")
        try:
            at = cluster.address
            nothing = Observations([])
            examine_topics(spark, nothing, name_server=at, topics={"events": few})  # warm
            began, used = time.monotonic(), _processor()
            report = examine_topics(spark, nothing, name_server=at, topics={"events": events})
            took, driver = time.monotonic() - began, _processor() - used
            assert len(report.groups) == groups
            began = time.monotonic()
            examine(read_topics(spark, nothing, name_server=at, topics={"events": few}))
            alone = (time.monotonic() - began) * 10
        finally:
            stop_session(spark)
    found = sum(len(each.rebalances) for each in report.groups)
    print(f"{groups:,} groups, {found:,} rebalances, {count:,} events of {size / 1e6:.0f} MB")
    print(f"{'one process (of a tenth, times ten)':<40}{alone:>8.1f} s{1:>8}")
    print(f"{'Spark, local[2]':<40}{took:>8.1f} s{took / alone:>8.2f}")
    print(f"{'of it processor time of the driver':<40}{driver:>8.1f} s{driver / alone:>8.2f}")


if __name__ == "__main__":
    main()
