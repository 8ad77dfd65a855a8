"""The ends of 1,024 queues, which the Spark source asks for before each micro-batch.

The source's own view of the cluster, which sends a broker all its questions before it reads an
answer, beside the same questions one after another. Times are the best of several rounds.
"""

import os
import time
from collections.abc import Callable, Sized

from tests.server_process import ServerProcess

import pocketmq as mq
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.model import TopicConfig
from pocketmq.spark.cluster_view import view_of
from pocketmq.spark.source_options import source_options

BROKERS = 2
QUEUES = 1024
ROUNDS = 15
GOAL_MS = 40


def best(ask: Callable[[], Sized]) -> tuple[float, float]:
    """Return the seconds, and the processor seconds of this process, of the quickest round."""
    elapsed, used = [], []
    for _ in range(ROUNDS):
        began, before = time.perf_counter(), time.process_time()
        assert len(ask()) == QUEUES
        elapsed.append(time.perf_counter() - began)
        used.append(time.process_time() - before)
    return min(elapsed), min(used)


def main() -> None:
    with ServerProcess("up", "--port", "0", "--brokers", str(BROKERS), "--memory") as cluster:
        address = cluster.namesrv
        each = QUEUES // BROKERS
        with mq.Admin(address) as admin:
            config = TopicConfig(topic_name="wide", read_queue_nums=each, write_queue_nums=each)
            admin.topics.create(config, "DefaultCluster").all()
        view = view_of(source_options({"nameServer": address, "subscribe": "wide"}, stream=True))
        reader: RecordReader = view.reader
        queues = view.listing().queues
        rows = {
            "one after another": best(lambda: [reader.end(queue) for queue in queues]),
            "all of a broker together": best(lambda: view.ends().found),
        }
        reader.close()
    print(f"{QUEUES} queues on {BROKERS} brokers, {os.cpu_count()} cores")
    print(f"{'':<28}{'time':>10}{'processor':>12}{'ratio':>8}")
    plain = rows["one after another"][0]
    for name, (elapsed, used) in rows.items():
        times = f"{elapsed * 1000:>7.1f} ms{used * 1000:>9.1f} ms"
        print(f"{name:<28}{times}{elapsed / plain:>8.2f}")
    together = rows["all of a broker together"][0] * 1000
    print(f"goal: {GOAL_MS} ms; {'met' if together <= GOAL_MS else 'missed'}")


if __name__ == "__main__":
    main()
