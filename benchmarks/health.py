"""Health of many groups: Spark, which examines each group where its events are, beside one process.

python -m benchmarks.health [--full]

Each group has members that join and leave every 30 seconds, and 16 queues. `--full` is 1,000 groups
of 100 rebalances, otherwise it is a tenth of them. Times are from the topic to the finished report,
without Spark's own start.
"""

import random
import resource
import sys
import time
from collections.abc import Iterator

from pocketmq import Cluster, Message, MessageQueue, Producer, RebalanceEvent
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


def fill(cluster: Cluster, topic: str, groups: int) -> int:
    """Send the events of groups; return how many."""
    count = 0
    with Producer(cluster.address, group="members") as producer:
        for number in range(groups):
            for event in events_of(f"group-{number:04}", number):
                producer.submit(Message(topic, event.to_json()))
                count += 1
        producer.flush()
    return count


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    groups = 1_000 if "--full" in sys.argv else 100
    with Cluster(in_process=False) as cluster:
        events = cluster.create_topic("events", queues=8)
        few = cluster.create_topic("few", queues=8)
        count = fill(cluster, events, groups)
        fill(cluster, few, groups // 10)
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
    print(f"{groups:,} groups, {found:,} rebalances, {count:,} events")
    print(f"{'one process (of a tenth, times ten)':<40}{alone:>8.1f} s{1:>8}")
    print(f"{'Spark, local[2]':<40}{took:>8.1f} s{took / alone:>8.2f}")
    print(f"{'of it processor time of the driver':<40}{driver:>8.1f} s{driver / alone:>8.2f}")


if __name__ == "__main__":
    main()
