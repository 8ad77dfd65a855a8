"""Streams: planned and read as Spark would, without Spark."""

import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from pocketmq import Admin, Cluster, Message, MessageQueue, Producer
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.client.options import ClientOptions
from pocketmq.errors import ConnectFailed, DataLost, MQError
from pocketmq.spark.schema import full_schema
from pocketmq.spark.stream_reader import StreamReader, stream_reader
from tests.spark.topics import bodies, send

ALL = ReadAllAvailable()

running: list[StreamReader] = []


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """Stop all readers after a test, as Spark does with a query's process."""
    yield
    while running:
        running.pop().stop()


def reader_of(cluster: Cluster, **options: Any) -> StreamReader:
    given = {"nameServer": cluster.address, "discoveryInterval": "0"}
    # A broker that was killed refuses at once; one that waits for a processor is there.
    given |= {"retryTimeout": "300ms", "requestTimeout": "30s"}
    named = {name: str(value) for name, value in options.items()}
    running.append(stream_reader(given | named, full_schema()))
    return running[-1]


def through_spark(offset: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def batch(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    """Return the bodies of a micro-batch, read by a copy as tasks have it."""
    tasks = reader.partitions(through_spark(start), through_spark(end))
    copy = pickle.loads(pickle.dumps(reader))
    return bodies(copy, pickle.loads(pickle.dumps(tasks)))


def test_a_stream_reads_what_comes(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, ["old"])
    reader = reader_of(cluster, subscribe=topic)
    start = reader.initialOffset()
    assert reader.initialOffset() == start
    send(cluster, topic, ["new"])
    end = reader.latestOffset(start, ALL)
    assert batch(reader, start, end) == ["new"]
    assert reader.latestOffset(end, ALL) == end
    send(cluster, topic, ["newer"], queue=1)
    assert batch(reader, end, reader.latestOffset(end, ALL)) == ["newer"]


def test_the_beginning_of_batch_0_survives_a_restart(cluster: Cluster, topic: str) -> None:
    """Spark asks for the initial offset anew; what came meanwhile must not be lost."""
    send(cluster, topic, ["old"])
    first = reader_of(cluster, subscribe=topic)
    start = first.initialOffset()
    send(cluster, topic, ["a", "b"])
    end = through_spark(first.latestOffset(start, ALL))
    again = reader_of(cluster, subscribe=topic)
    later = again.initialOffset()
    assert later != start
    assert batch(again, later, end) == ["a", "b"]


def test_batch_0_is_planned_even_if_it_is_empty(cluster: Cluster, topic: str) -> None:
    """Its end tells where the stream began, and is kept in the checkpoint."""
    reader = reader_of(cluster, subscribe=topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert end != start
    assert reader.partitions(start, end) == []
    send(cluster, topic, ["a"])
    after = reader.latestOffset(end, ALL)
    assert batch(reader, end, after) == ["a"]
    assert "@begin" not in after


def test_new_queues_and_topics_are_read_from_their_beginning(cluster: Cluster, topic: str) -> None:
    reader = reader_of(cluster, subscribePattern=f"{topic}.*")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    cluster.create_topic(topic, queues=3)
    send(cluster, topic, ["third queue"], queue=2)
    other = cluster.create_topic(f"{topic}-new", queues=1)
    send(cluster, other, ["new topic"])
    after = reader.latestOffset(end, ALL)
    assert sorted(batch(reader, end, after)) == ["new topic", "third queue"]
    assert reader.latestOffset(after, ALL) == after


def test_a_limit_is_shared_in_proportion(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(30), queue=0)
    send(cluster, topic, range(10), queue=1)
    reader = reader_of(cluster, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=8)
    assert reader.getDefaultReadLimit() == ReadMaxRows(8)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(8))
    assert end[topic]["broker-0"] == {"0": 6, "1": 2}
    assert reader.reportLatestOffset() == {
        topic: {"broker-0": {"0": 30, "1": 10}},
        "@lag": {"total": 32, "max": 24},
    }
    assert reader_of(cluster, subscribe=topic).getDefaultReadLimit() == ALL


def test_a_small_batch_waits_for_company_but_not_for_ever(cluster: Cluster, topic: str) -> None:
    now = 1000.0
    options = {"minOffsetsPerTrigger": 5, "maxTriggerDelay": "1m", "startingOffsets": "earliest"}
    made = reader_of(cluster, subscribe=topic, **options)
    reader = StreamReader(made.options, full_schema(), clock=lambda: now)
    running.append(reader)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    send(cluster, topic, range(3))
    assert reader.latestOffset(end, ALL) == end
    send(cluster, topic, range(3, 5))
    full = reader.latestOffset(end, ALL)
    assert batch(reader, end, full) == ["0", "1", "2", "3", "4"]
    send(cluster, topic, ["late"])
    assert reader.latestOffset(full, ALL) == full
    now += 61
    assert batch(reader, full, reader.latestOffset(full, ALL)) == ["late"]


def test_what_is_available_now_ends(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(5))
    reader = reader_of(cluster, subscribe=topic, startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    send(cluster, topic, ["too late"])
    first = reader.latestOffset(start, ReadMaxRows(3))
    second = reader.latestOffset(first, ReadMaxRows(3))
    assert batch(reader, start, first) + batch(reader, first, second) == [str(n) for n in range(5)]
    assert reader.latestOffset(second, ReadMaxRows(3)) == second


def test_a_queue_that_is_gone_ends_the_stream_or_is_passed_over(
    cluster: Cluster, topic: str
) -> None:
    send(cluster, topic, ["a"])
    reader = reader_of(cluster, subscribe=topic, startingOffsets="earliest")
    end = reader.latestOffset(reader.initialOffset(), ALL)
    gone = through_spark(end)
    gone[topic]["broker-7"] = {"0": 12}
    with pytest.raises(DataLost, match=r"queue 0 of topic .* on broker 'broker-7'"):
        reader.latestOffset(gone, ALL)
    lenient = reader_of(cluster, subscribe=topic, failOnDataLoss="false")
    assert lenient.latestOffset(gone, ALL) == gone
    send(cluster, topic, ["b"])
    after = lenient.latestOffset(gone, ALL)
    assert after[topic]["broker-7"] == {"0": 12}  # it may come back
    assert batch(lenient, gone, after) == ["b"]


def test_a_queue_made_anew_ends_the_stream_or_is_read_from_its_beginning(
    cluster: Cluster, topic: str
) -> None:
    send(cluster, topic, ["a", "b"])
    ahead = {topic: {"broker-0": {"0": 50, "1": 0}}}
    reader = reader_of(cluster, subscribe=topic)
    with pytest.raises(DataLost, match="it ends at 2 now, as if the topic had been recreated"):
        reader.latestOffset(ahead, ALL)
    lenient = reader_of(cluster, subscribe=topic, failOnDataLoss="false")
    after = lenient.latestOffset(ahead, ALL)
    assert batch(lenient, ahead, after) == ["a", "b"]


def test_progress_is_told_to_the_group(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(4))
    group = f"g-{topic}"
    reader = reader_of(cluster, subscribe=topic, startingOffsets="earliest", groupId=group)
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadMaxRows(3))
    second = reader.latestOffset(first, ALL)
    queue = MessageQueue(topic, "broker-0", 0)
    with RecordReader(ClientOptions(name_servers=cluster.address)) as look:
        assert look.committed(group, queue) == 3
        reader.latestOffset(second, ALL)
        assert look.committed(group, queue) == 4
        reader.commit(first)  # Spark's commits come a batch late
        assert look.committed(group, queue) == 4
        assert f"%RETRY%{group}" in look.topics()
    reader.stop()


def test_a_broker_that_is_down_ends_the_stream_or_is_left_out_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.spark.cluster_view.REST", 0.0)
    with Cluster(brokers=2, data=tmp_path) as two:
        topic = two.create_topic("orders", queues=1)
        options = {
            "subscribe": topic,
            "startingOffsets": "earliest",
            "discoveryInterval": "1ms",  # a queue that is back is seen at once
        }
        strict = reader_of(two, **options)
        lenient = reader_of(two, failOnDataLoss="false", **options)
        start = lenient.latestOffset(lenient.initialOffset(), ALL)
        other = strict.latestOffset(strict.initialOffset(), ALL)
        two.kill("broker-1")
        send(two, topic, ["while one is down"])
        with pytest.raises(MQError, match="broker-1"):
            strict.latestOffset(other, ALL)
        end = lenient.latestOffset(start, ALL)
        assert batch(lenient, start, end) == ["while one is down"]
        assert end[topic]["broker-1"] == {"0": 0}
        two.restart("broker-1")
        with Producer(two.address, group="tests", send_timeout=30.0) as producer:
            back = MessageQueue(topic, "broker-1", 0)
            producer.send(Message(topic, b"back"), queue=back)
        assert batch(lenient, end, lenient.latestOffset(end, ALL)) == ["back"]


def orders_of_two(two: Cluster, **options: Any) -> tuple[str, StreamReader, dict[str, Any]]:
    """Make a topic on two brokers, with a message on each, and a stream that has read them."""
    topic = two.create_topic("orders", queues=1)
    with Producer(two.address, group="tests", send_timeout=30.0) as producer:
        for broker in two.brokers:
            producer.send(Message(topic, broker.encode()), queue=MessageQueue(topic, broker, 0))
    given = {"subscribe": topic, "startingOffsets": "earliest"}
    reader = reader_of(two, **given | options)
    return topic, reader, reader.latestOffset(reader.initialOffset(), ALL)


@pytest.mark.parametrize("down", [["broker-1"], ["broker-0", "broker-1"]])
def test_a_stream_waits_for_brokers_that_come_back(tmp_path: Path, down: list[str]) -> None:
    with Cluster(brokers=2, data=tmp_path) as two:
        topic, reader, end = orders_of_two(two, retryTimeout="60s")
        for broker in down:
            two.kill(broker)

        def come_back() -> None:
            for broker in down:
                two.restart(broker)
            with Producer(two.address, group="tests", send_timeout=30.0) as producer:
                place = MessageQueue(topic, "broker-1", 0)
                producer.send(Message(topic, b"new"), queue=place)

        timer = threading.Timer(0.5, come_back)
        timer.start()
        after = reader.latestOffset(end, ALL)
        timer.join()
        after = reader.latestOffset(after, ALL)
        assert batch(reader, end, after) == ["new"]


def test_what_stays_away_is_named_with_topic_broker_and_queues(tmp_path: Path) -> None:
    with Cluster(brokers=2, data=tmp_path) as two:
        _, reader, end = orders_of_two(two)
        two.kill("broker-1")
        missed = r"queue 0 of topic 'orders' on broker 'broker-1' .* \(waited 0.3 s\)"
        with pytest.raises(DataLost, match=missed):
            reader.latestOffset(end, ALL)
        two.kill("broker-0")
        with pytest.raises(DataLost, match=r"broker-0.* unknown to the name server.*broker-1"):
            reader.latestOffset(end, ALL)


def test_a_topic_that_is_gone_is_waited_for_and_named(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, ["a"])
    reader = reader_of(cluster, subscribe=topic, startingOffsets="earliest")
    lenient = reader_of(cluster, subscribe=topic, failOnDataLoss="false")
    end = reader.latestOffset(reader.initialOffset(), ALL)
    with Admin(cluster.address) as admin:
        admin.topics.delete(topic, *admin.topics.clusters(topic))
    with pytest.raises(DataLost, match=r"its topic is unknown to the name server.*waited 0.3 s"):
        reader.latestOffset(end, ALL)
    assert lenient.latestOffset(end, ALL) == end
    cluster.create_topic(topic, queues=2)
    send(cluster, topic, ["b"])
    after = lenient.latestOffset(end, ALL)
    assert batch(lenient, end, after) == ["b"]


def test_a_topic_recreated_with_more_messages_is_told_by_its_first_message(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    send(cluster, topic, ["a", "b"])
    strict = reader_of(cluster, subscribe=topic, startingOffsets="earliest")
    end = strict.latestOffset(strict.initialOffset(), ALL)
    assert end["@since"][topic]["broker-0"]["0"][0] == 0
    with Admin(cluster.address) as admin:
        admin.topics.delete(topic, *admin.topics.clusters(topic))
    cluster.create_topic(topic, queues=2)
    send(cluster, topic, ["new 0", "new 1", "new 2"])
    with pytest.raises(DataLost, match="it was recreated: its first message, offset 0"):
        strict.latestOffset(through_spark(end), ALL)
    lenient = reader_of(cluster, subscribe=topic, failOnDataLoss="false")
    after = lenient.latestOffset(through_spark(end), ALL)
    assert batch(lenient, end, after) == ["new 0", "new 1", "new 2"]
    assert "it was recreated" in caplog.text
    assert lenient.latestOffset(through_spark(after), ALL) == after
    send(cluster, topic, ["more"])
    assert batch(lenient, after, lenient.latestOffset(through_spark(after), ALL)) == ["more"]


def test_a_recreated_queue_is_recognised_again_if_its_start_was_not_to_be_had(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its broker answered, and then did not; another queue goes on meanwhile."""
    send(cluster, topic, ["a"])
    first = reader_of(cluster, subscribe=topic, startingOffsets="earliest")
    end = first.latestOffset(first.initialOffset(), ALL)
    with Admin(cluster.address) as admin:
        admin.topics.delete(topic, *admin.topics.clusters(topic))
    cluster.create_topic(topic, queues=2)
    send(cluster, topic, ["new 0", "new 1"])
    send(cluster, topic, ["other"], queue=1)
    lenient = reader_of(cluster, subscribe=topic, failOnDataLoss="false")
    gone = ConnectFailed("127.0.0.1:1", "refused")
    with monkeypatch.context() as patch:
        reader = lenient._queues._view.reader
        patch.setattr(reader, "all_bounds", lambda queues: dict.fromkeys(queues, gone))
        middle = lenient.latestOffset(through_spark(end), ALL)
        assert batch(lenient, end, middle) == ["other"]
    after = lenient.latestOffset(through_spark(middle), ALL)
    assert batch(lenient, middle, after) == ["new 0", "new 1"]


def test_checkpoints_without_first_messages_are_continued(cluster: Cluster, topic: str) -> None:
    """Those of earlier versions; the next micro-batch has them."""
    send(cluster, topic, ["a", "b"])
    reader = reader_of(cluster, subscribe=topic)
    old = {topic: {"broker-0": {"0": 1, "1": 0}}}
    after = reader.latestOffset(old, ALL)
    assert batch(reader, old, after) == ["b"]
    assert after["@since"][topic]["broker-0"]["1"] == [0, -1]


def test_first_messages_are_kept_where_they_are_not_compared_again(
    cluster: Cluster, topic: str
) -> None:
    send(cluster, topic, ["a"])
    options = {"startingOffsets": "earliest", "discoveryInterval": "1h"}
    reader = reader_of(cluster, subscribe=topic, **options)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    send(cluster, topic, ["b"])
    after = reader.latestOffset(through_spark(end), ALL)
    assert batch(reader, end, after) == ["b"]
    assert through_spark(after)["@since"] == through_spark(end)["@since"]


def test_a_topic_that_is_not_subscribed_any_more_is_told_at_once(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = cluster.create_topic(f"{topic}-more", queues=1)
    send(cluster, topic, ["a"])
    both = reader_of(cluster, subscribe=f"{topic},{other}", startingOffsets="earliest")
    end = both.latestOffset(both.initialOffset(), ALL)
    fewer = reader_of(cluster, subscribe=topic, retryTimeout="1d")
    with pytest.raises(DataLost, match=f"{other}.* is not selected any more by the options"):
        fewer.latestOffset(end, ALL)
    lenient = reader_of(cluster, subscribe=topic, failOnDataLoss="false", retryTimeout="1d")
    send(cluster, topic, ["b"])
    send(cluster, other, ["unread"])
    after = lenient.latestOffset(end, ALL)
    assert batch(lenient, end, after) == ["b"]
    assert after[other] == end[other]  # in case it is subscribed again
    assert lenient.latestOffset(after, ALL) == after
    assert caplog.text.count("is not selected any more") == 1
    again = reader_of(cluster, subscribe=f"{topic},{other}")
    assert batch(again, after, again.latestOffset(after, ALL)) == ["unread"]


def test_what_was_away_when_an_available_now_run_began_belongs_to_it(tmp_path: Path) -> None:
    with Cluster(brokers=2, data=tmp_path) as two:
        topic, reader, end = orders_of_two(two, retryTimeout="60s")
        reader.stop()
        with Producer(two.address, group="tests", send_timeout=30.0) as producer:
            producer.send(Message(topic, b"new"), queue=MessageQueue(topic, "broker-1", 0))
        two.kill("broker-1")
        again = reader_of(two, subscribe=topic, retryTimeout="30s", discoveryInterval="1h")
        again.prepareForTriggerAvailableNow()  # lists one broker; only waiting lists them again
        two.restart("broker-1")
        after = again.latestOffset(end, ALL)
        assert batch(again, end, after) == ["new"]
        assert again.latestOffset(after, ALL) == after


def test_a_limit_in_bytes_ends_a_micro_batch(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, ["x" * 1000] * 90)
    reader = reader_of(
        cluster, subscribe=topic, startingOffsets="earliest", maxBytesPerTrigger="30k"
    )
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxBytes(30 << 10)
    end = reader.latestOffset(reader.initialOffset(), limit)
    assert 20 < end[topic]["broker-0"]["0"] < 30
    assert reader.latestOffset(end, ALL)[topic]["broker-0"]["0"] == 90
    both = reader_of(cluster, subscribe=topic, maxOffsetsPerTrigger=5, maxBytesPerTrigger="30k")
    assert both.getDefaultReadLimit() == ReadMaxRows(5)
    assert both.latestOffset(end, ReadMaxRows(50))[topic]["broker-0"]["0"] < 60


def test_a_group_s_offsets_are_where_a_stream_starts(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(5))
    group = f"g-{topic}"
    with RecordReader(ClientOptions(name_servers=cluster.address)) as look:
        look.introduce(group, [topic])
        look.commit(group, MessageQueue(topic, "broker-0", 0), 3)
    reader = reader_of(cluster, subscribe=topic, startingOffsets="group", groupId=group)
    start = reader.initialOffset()
    assert batch(reader, start, reader.latestOffset(start, ALL)) == ["3", "4"]


def test_without_a_name_server_a_stream_goes_on(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers are known by then, as with RocketMQ's own clients."""
    reader = reader_of(cluster, subscribe=topic)
    start = reader.latestOffset(reader.initialOffset(), ALL)
    reader._queues._view.reader._questions._servers = ["127.0.0.1:1"]
    send(cluster, topic, ["a"])
    assert batch(reader, start, reader.latestOffset(start, ALL)) == ["a"]
    assert "keeping the known queues" in caplog.text


HUNG_UP = """
import builtins, sys
from pocketmq.spark.schema import full_schema
from pocketmq.spark.stream_reader import stream_reader

reader = stream_reader({"nameServer": sys.argv[1], "subscribe": sys.argv[2]}, full_schema())
reader.initialOffset()
try:
    raise getattr(builtins, sys.argv[3])("told")
finally:
    reader.stop()
"""


@pytest.mark.parametrize(
    ("error", "code"), [("EOFError", 0), ("BrokenPipeError", 0), ("ValueError", 1)]
)
def test_a_process_that_spark_hung_up_on_ends_without_a_word(
    cluster: Cluster, topic: str, error: str, code: int
) -> None:
    """Spark's worker stops its reader amid the error that ended it; others are to be told."""
    ended = subprocess.run(
        [sys.executable, "-c", HUNG_UP, cluster.address, topic, error],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code
    assert ("told" in ended.stderr) == bool(code)
