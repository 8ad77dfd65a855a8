"""`pocketmq produce` and `consume` as a user meets them: real processes, lines in and out."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

import pocketmq as mq
from pocketmq import Cluster
from pocketmq.cli.consume import _LAST_LINE
from tests.cli.in_process import command
from tests.own_time import own_time
from tests.ports import free_port
from tests.server_process import POCKETMQ


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(in_process=False) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    return cluster.create_topic(f"t-{abs(hash(request.node.nodeid))}", queues=2)


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [POCKETMQ, *arguments], input=stdin, capture_output=True, timeout=60, check=False
    )


def produce(cluster: Cluster, topic: str, lines: bytes, *more: str) -> None:
    done = command("produce", "-n", cluster.address, "-t", topic, *more, stdin=lines)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def consume(cluster: Cluster, topic: str, *more: str) -> subprocess.CompletedProcess[bytes]:
    return run("consume", "-n", cluster.address, "-t", topic, "--from", "first", *more)


def consume_here(cluster: Cluster, topic: str, *more: str) -> subprocess.CompletedProcess[bytes]:
    """Consume in this process."""
    return command("consume", "-n", cluster.address, "-t", topic, "--from", "first", *more)


BOTH = pytest.mark.parametrize("way", [(), ("--pull",)], ids=["push", "pull"])


@BOTH
def test_lines_become_messages_and_messages_lines(
    cluster: Cluster, topic: str, way: tuple[str, ...]
) -> None:
    produce(cluster, topic, b"one\ntwo\r\nthr\xc3\xa9e \x1b[31m\nlast without an end")
    done = consume(cluster, topic, "-g", f"g-{topic}", "--count", "4", "--timeout", "30", *way)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(done.stdout.splitlines()) == sorted(
        [b"last without an end", b"one", "thrée \\x1b[31m".encode(), b"two"]
    )


def test_the_end_does_not_wait_for_messages_beyond_the_count(cluster: Cluster) -> None:
    topic = cluster.create_topic("beyond", queues=8)
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        for _ in range(8):  # one in each: all are there before the first is printed
            producer.send(mq.Message(topic, b"again"))
    words = ["consume", "-n", cluster.address, "-t", topic, "--from", "first", "--count", "1"]
    for number in range(5):
        group = f"g{number}-{topic}"
        with subprocess.Popen([POCKETMQ, *words, "-g", group], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"again\n"
            began, took = own_time(), 0.0
            while process.poll() is None:
                time.sleep(0.05)
                took = own_time() - began
            assert process.returncode == 0
            assert took < _LAST_LINE - 1


@BOTH
def test_what_is_not_printed_stays_with_the_group(
    cluster: Cluster, topic: str, way: tuple[str, ...]
) -> None:
    produce(cluster, topic, b"a\nb\nc\nd\ne\n")
    group = f"g-{topic}"
    first = consume(cluster, topic, "-g", group, "--count", "2", "--timeout", "30", *way)
    rest = consume(cluster, topic, "-g", group, "--count", "3", "--timeout", "30", *way)
    assert (first.returncode, rest.returncode) == (0, 0)
    lines = first.stdout.splitlines() + rest.stdout.splitlines()
    assert sorted(lines) == [b"a", b"b", b"c", b"d", b"e"]


def test_json_carries_everything_there_and_back(cluster: Cluster, topic: str) -> None:
    lines: list[dict[str, object]] = [
        {"body": "42 EUR", "tag": "paid", "keys": ["A17", "B2"], "properties": {"region": "eu"}},
        {"body_base64": "/wA=", "ordering_key": "customer-7"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    sent = run("produce", "-n", cluster.address, "-t", topic, "--json", "--receipts", stdin=text)
    assert (sent.returncode, sent.stderr) == (0, b"")
    receipts = [json.loads(line) for line in sent.stdout.splitlines()]
    assert [receipt["topic"] for receipt in receipts] == [topic, topic]
    done = consume_here(
        cluster, topic, "-g", f"g-{topic}", "--json", "--count", "2", "--timeout", "30"
    )
    found = {line["message_id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(found) == {receipt["message_id"] for receipt in receipts}
    text_line = found[receipts[0]["message_id"]]
    assert {name: text_line[name] for name in lines[0]} == lines[0]
    assert text_line["broker"] == "broker-0"
    assert found[receipts[1]["message_id"]]["body_base64"] == "/wA="
    again = command("produce", "-n", cluster.address, "-t", topic, "--json", stdin=done.stdout)
    assert (again.returncode, again.stderr) == (0, b"")


def test_tags_and_keys_of_all_lines_and_those_that_are_wanted(cluster: Cluster, topic: str) -> None:
    produce(cluster, topic, b"paid\n", "--tag", "paid", "--key", "A17", "--key", "B2")
    produce(cluster, topic, b"open\n", "--tag", "open", "--key", "A17")
    by_tag = consume_here(
        cluster, topic, "-g", f"t-{topic}", "--tag", "paid || x", "--count", "1", "--timeout", "30"
    )
    assert by_tag.stdout == b"paid\n"
    by_key = consume_here(
        cluster, topic, "-g", f"k-{topic}", "--key", "B2", "--count", "1", "--timeout", "30"
    )
    assert by_key.stdout == b"paid\n"


def test_fewer_messages_than_wanted_end_with_1(cluster: Cluster, topic: str) -> None:
    done = consume_here(cluster, topic, "-g", f"g-{topic}", "--count", "2", "--timeout", "0.2")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"pocketmq: only 0 of 2 messages arrived\n"
    quiet = consume_here(cluster, topic, "-g", f"g-{topic}", "--timeout", "0.2", "--pull")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, b"", b"")


@BOTH
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly_and_what_was_printed_is_consumed(
    cluster: Cluster, topic: str, way: tuple[str, ...], number: signal.Signals
) -> None:
    produce(cluster, topic, b"first\n")
    group = f"g-{topic}"
    words = ["consume", "-n", cluster.address, "-t", topic, "-g", group, "--from", "first", *way]
    with subprocess.Popen(
        [str(POCKETMQ), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"first\n"
            running.send_signal(number)
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, out, err) == (0, b"", b"")
    with mq.PullConsumer(cluster.address, group=group) as consumer:
        offsets = [consumer.committed(queue) for queue in consumer.queues(topic)]
    assert offsets.count(1) == 1


def test_a_reader_that_has_seen_enough_is_no_reason_to_shout(cluster: Cluster, topic: str) -> None:
    produce(cluster, topic, b"".join(b"%05d\n" % number for number in range(2000)))
    words = (
        f"{POCKETMQ} consume -n {cluster.address} -t {topic} -g g-{topic} --from first | head -n 1"
    )
    done = subprocess.run(words, shell=True, capture_output=True, timeout=60, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


def test_mistakes_are_one_line(cluster: Cluster, topic: str) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    cases = {
        ("produce", "-n", nobody, "-t", "t"): (1, "no name server responds at"),
        ("consume", "-n", nobody, "-t", "t"): (1, "no name server responds at"),
        ("produce", "-n", cluster.address): (2, "Missing option '-t'"),
        ("consume", "-n", "here", "-t", "t"): (2, "'here' is not an address"),
        ("consume", "-n", cluster.address, "-t", "t", "--from", "noon"): (2, "--from takes first"),
        ("consume", "-n", cluster.address, "-t", "a b"): (2, "invalid topic name 'a b'"),
        ("consume", "-n", cluster.address, "-t", topic, "--tag", "||"): (2, "column"),
    }
    for arguments, (code, text) in cases.items():
        done = command(*arguments, stdin=b"x\n")
        told = done.stderr.decode()
        assert (done.returncode, done.stdout) == (code, b""), (arguments, told)
        assert told.startswith("pocketmq: "), told
        assert text in told
        assert told.count("\n") == 1, told


@pytest.mark.parametrize("way", [[], ["--pull"]], ids=["push", "pull"])
def test_a_topic_that_is_not_there_is_told_and_the_most_similar_one(
    cluster: Cluster, way: list[str]
) -> None:
    cluster.create_topic("refunds", queues=1)
    wanted = {"refnds": "did you mean refunds?", "quite-else": "see 'pocketmq admin topicList'"}
    for name, hint in wanted.items():
        done = command("consume", "-n", cluster.address, "-t", name, *way)
        told = f"pocketmq: topic {name!r} does not exist; {hint}\n"
        assert (done.returncode, done.stdout, done.stderr.decode()) == (3, b"", told)


def test_a_line_that_is_no_message_is_named(cluster: Cluster, topic: str) -> None:
    done = command(
        "produce",
        "-n",
        cluster.address,
        "-t",
        topic,
        "--json",
        stdin=b'{"body":"a"}\n{"tag":"b"}\n',
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"pocketmq: line 2: ")
    empty = command("produce", "-n", cluster.address, "-t", topic, stdin=b"a\n\n")
    assert empty.returncode == 2
    assert b"line 2: a message needs a body" in empty.stderr


def test_help_names_the_options() -> None:
    for name in ("produce", "consume"):
        done = command(name, "--help")
        assert done.returncode == 0
        for option in ("-n", "-t", "-g", "--tag", "--key", "--json", "--count", "--timeout"):
            assert option.encode() in done.stdout
