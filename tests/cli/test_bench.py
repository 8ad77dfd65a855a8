"""`pocketmq bench` as a user meets it: a real process on a real cluster."""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from subprocess import PIPE

import pytest

import pocketmq as mq
from pocketmq import Cluster
from pocketmq.cli.bench.measuring import BenchPlan, measure
from pocketmq.client.options import ClientOptions
from tests.server_process import POCKETMQ, wait_for

ROWS = [
    "send, one at a time",
    "send, 8 in flight",
    "send, batches of 16",
    "consume a backlog",
    "end to end, 200 per second",
]
QUICK = ("--seconds", "0.2", "--in-flight", "8", "--batch", "16")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2) as running:
        yield running


def bench(*arguments: str) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [POCKETMQ, "bench", *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_everything_is_measured_and_consumed(cluster: Cluster) -> None:
    code, lines, errors = bench("-n", cluster.address, "--json", *QUICK)
    assert (code, errors) == (0, "")
    rows = [json.loads(line) for line in lines]
    assert [row["what"] for row in rows] == ROWS
    assert [row["rate"] for row in rows] == [
        round(row["messages"] / row["seconds"], 1) for row in rows
    ]
    assert all(row["cpu_us"] > 0 for row in rows)
    single, flight, batches, backlog, live = rows
    assert backlog["messages"] == sum(row["messages"] for row in (single, flight, batches))
    assert batches["messages"] % 16 == 0
    assert 0 < live["p50_ms"] <= live["p99_ms"]
    with mq.Admin(cluster.address) as admin:
        status = admin.topics.status("pocketmq_bench")
        progress = admin.groups.progress("pocketmq_bench")
    assert len(status.queues) == 16
    lags = [each.broker_offset - each.consumer_offset for each in progress.queues.values()]
    assert lags == [0] * len(lags)


def test_a_table_is_for_people(cluster: Cluster) -> None:
    code, lines, errors = bench("-n", cluster.address, "-t", "mine", "--size", "1024", *QUICK)
    assert (code, errors) == (0, "")
    assert lines[0].split() == ["1024", "B", "messages/s", "p50", "ms", "p99", "ms", "CPU", "µs"]
    assert [line[:26].rstrip() for line in lines[1:]] == ROWS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-n", "127.0.0.1:1"), "no name server responds at 127.0.0.1:1"),
        (("--size", "7"), "7 is not in the range"),
        (("-t", "no spaces"), "no spaces"),
    ],
)
def test_mistakes_are_one_line(cluster: Cluster, options: tuple[str, ...], said: str) -> None:
    where = () if "-n" in options else ("-n", cluster.address)
    code, _, errors = bench(*where, *options)
    assert code in {1, 2}
    assert errors.count("\n") == 1
    assert said in errors


def test_a_cluster_that_goes_away_is_one_line() -> None:
    with Cluster(in_process=False) as cluster:
        command = [
            str(POCKETMQ),
            "bench",
            "-n",
            cluster.address,
            "--seconds",
            "30",
            "--in-flight",
            "8",
        ]
        with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as running:
            wait_for(partial(sends, cluster.address), "the first sends")
            cluster.kill("broker-0")
            out, errors = running.communicate(timeout=60)
    assert (running.returncode, out.count("\n")) == (1, 1)
    assert errors.count("\n") == 1
    assert "message to topic 'pocketmq_bench' not acknowledged" in errors


def sends(address: str) -> bool:
    with mq.Admin(address) as admin:
        try:
            queues = admin.topics.status("pocketmq_bench").queues
        except mq.MQError:
            return False
    return sum(each.max_offset for each in queues.values()) > 100


async def test_a_process_that_is_held_up_measures_something(cluster: Cluster) -> None:
    """Then the time is over before the first send."""
    client = ClientOptions(name_servers=cluster.address)
    plan = BenchPlan(topic="held_up", size=100, seconds=0.0, in_flight=8, batch=16)
    rows = [row.messages async for row in measure(client, plan)]
    single, flight, *others = rows
    assert (single, others) == (1, [16, single + flight + 16, 1])
    assert flight > 0


def test_batches_are_as_large_as_messages_allow(cluster: Cluster) -> None:
    size = ("-t", "large", "--size", "65536", "--seconds", "0.1", "--in-flight", "1")
    code, lines, errors = bench("-n", cluster.address, "--json", *size)
    assert (code, errors) == (0, "")
    rows = [json.loads(line) for line in lines]
    assert rows[2]["what"] == "send, batches of 63"
    assert rows[4]["messages"] == 20
    assert rows[4]["seconds"] > 0.09
