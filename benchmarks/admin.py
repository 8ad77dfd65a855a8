"""How soon an admin command answers, start-up included, and how it grows with the cluster.

python -m benchmarks.admin

Times are the best of several runs on a warm cluster, beside an empty Python program's, and so are
processor seconds, which hold on a busy machine, too.
"""

import os
import subprocess
import sys
import time

from tests.server_process import POCKETMQ, ServerProcess, wait_for

import pocketmq as mq
from pocketmq.model import TopicConfig

RUNS = 7
TOPICS = 500
COMMANDS = (
    ("topicList",),
    ("topicStatus", "-t", "orders"),
    ("topicRoute", "-t", "orders"),
    ("clusterList",),
    ("consumerProgress",),
    ("consumerProgress", "-g", "billing"),
    ("queryMsgByKey", "-t", "orders", "-k", "k1"),
    ("explain", "-g", "billing"),
    ("statsAll",),
)


def best(command: list[str], runs: int = RUNS) -> tuple[float, float]:
    """Return the seconds and the processor seconds of the quickest run."""
    results = []
    for _ in range(runs):
        before, began = os.times(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        elapsed, after = time.perf_counter() - began, os.times()
        used = after.children_user + after.children_system
        results.append((elapsed, used - before.children_user - before.children_system))
    return min(each[0] for each in results), min(each[1] for each in results)


def table(title: str, address: str, empty: float) -> None:
    print(f"\n{title:<40}{'answers':>10}{'processor':>12}{'× empty':>10}")
    for name, *options in COMMANDS:
        command = [str(POCKETMQ), "admin", name, "-n", address, *options]
        elapsed, used = best(command)
        shown = " ".join((name, *options))
        print(f"{shown:<40}{elapsed * 1000:>7.0f} ms{used * 1000:>9.0f} ms{elapsed / empty:>10.1f}")


def main() -> None:
    empty, used = best([sys.executable, "-c", "pass"])
    print(f"{'an empty program':<40}{empty * 1000:>7.0f} ms{used * 1000:>9.0f} ms")
    with ServerProcess("up", "--port", "0", "--brokers", "2") as cluster:
        address = cluster.namesrv
        with (
            mq.Admin(address) as admin,
            mq.Producer(address, group="shop") as producer,
            mq.PushConsumer(address, group="billing") as consumer,
        ):
            config = TopicConfig(topic_name="orders", read_queue_nums=8, write_queue_nums=8)
            admin.topics.create(config, "DefaultCluster").all()
            for number in range(100):
                producer.send(mq.Message("orders", b"42 EUR", keys=[f"k{number}"]))
            consumer.subscribe("orders", "*", lambda _: None)
            wait_for(lambda: sum(map(len, consumer.assignment().values())) == 16, "all queues")
            table("2 brokers, 1 topic", address, empty)
            for number in range(TOPICS):
                more = TopicConfig(
                    topic_name=f"topic-{number}", read_queue_nums=4, write_queue_nums=4
                )
                admin.topics.create(more, "DefaultCluster").all()
            table(f"2 brokers, {TOPICS} topics", address, empty)


if __name__ == "__main__":
    main()
