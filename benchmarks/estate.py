"""How soon admin commands answer on a whole estate: 500 topics, 300 groups, 1,000 live clients.

python -m benchmarks.estate

Times hold the start of the command. The bar is two seconds for each; beside them stands what an
empty Python program takes.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.server_process import POCKETMQ, ServerProcess

import pocketmq as mq
from benchmarks.admin import best
from pocketmq.model import TopicConfig

TOPICS, GROUPS, CLIENTS = 500, 300, 1000
RUNS = 3
BAR = 2.0
COMMANDS = (
    ("clusterList",),
    ("topicList",),
    ("topicList", "-c"),
    ("topicRoute", "-t", "topic-7"),
    ("topicStatus", "-t", "topic-7"),
    ("consumerProgress",),
    ("consumerProgress", "-g", "group-7"),
    ("consumerProgress", "-g", "group-7", "-s", "true"),
    ("consumerConnection", "-g", "group-7"),
    ("consumerStatus", "-g", "group-7"),
    ("producerConnection", "-g", "estate", "-t", "topic-7"),
    ("brokerStatus", "-c", "DefaultCluster"),
    ("queryMsgByKey", "-t", "topic-7", "-k", "key-7"),
    ("statsAll",),
    ("explain", "-g", "group-7"),
    ("what-if", "-g", "group-7", "--join", "1"),
    ("top", "--json"),
)


@contextmanager
def estate() -> Iterator[str]:
    """A cluster of two brokers with all topics, groups and clients; gives its name server."""
    with ServerProcess("up", "--port", "0", "--brokers", "2") as cluster:
        with mq.Admin(cluster.namesrv) as admin:
            for number in range(TOPICS):
                config = TopicConfig(
                    topic_name=f"topic-{number}", read_queue_nums=4, write_queue_nums=4
                )
                admin.topics.create(config, "DefaultCluster").all()
        sizes = map(str, (TOPICS, GROUPS, CLIENTS))
        command = [sys.executable, "-m", "benchmarks._estate_process", cluster.namesrv, *sizes]
        clients = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert clients.stdout is not None
        try:
            assert clients.stdout.readline() == "ready\n"
            yield cluster.namesrv
        finally:
            clients.kill()
            clients.wait()


def main() -> None:
    empty, used = best([sys.executable, "-c", "pass"], RUNS)
    print(f"{'an empty program':<50}{empty * 1000:>7.0f} ms{used * 1000:>9.0f} ms")
    with estate() as address:
        title = f"{TOPICS} topics, {GROUPS} groups, {CLIENTS:,} clients"
        print(f"{title:<50}{'answers':>10}{'processor':>12}{'of bar':>10}")
        for name, *options in COMMANDS:
            elapsed, used = best([str(POCKETMQ), "admin", name, "-n", address, *options], RUNS)
            shown = " ".join((name, *options))
            print(
                f"{shown:<50}{elapsed * 1000:>7.0f} ms{used * 1000:>9.0f} ms{elapsed / BAR:>10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
