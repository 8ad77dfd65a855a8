"""Batches: planned and read as Spark would, without Spark."""

import pickle
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from pocketmq import Cluster, Message, MessageQueue, Producer
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.client.options import ClientOptions
from pocketmq.errors import DataLost, InvalidInput, MQError, OptionInvalid
from pocketmq.spark.batch_reader import Task, batch_reader
from pocketmq.spark.planning import Range
from pocketmq.spark.schema import full_schema
from tests.server_process import wait_for
from tests.spark.topics import bodies, rows, send


def reader_of(
    cluster: Cluster, schema: StructType | None = None, **options: Any
) -> DataSourceReader:
    # A broker that was killed refuses at once; one that waits for a processor is there.
    given = {"nameServer": cluster.address, "retryTimeout": "1s", "requestTimeout": "30s"}
    named = {name: str(value) for name, value in options.items()}
    made = batch_reader(given | named, schema or full_schema())
    copy: DataSourceReader = pickle.loads(pickle.dumps(made))  # as Spark sends it to tasks
    return copy


def test_everything_is_read_once(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(5000), queue=0)
    send(cluster, topic, range(5000, 5010), queue=1)
    reader = reader_of(cluster, subscribe=topic, pullMessages=900, batchRows=2000)
    tasks = reader.partitions()
    assert len(tasks) == 1
    assert bodies(reader, tasks) == [str(n) for n in range(5010)]


def test_columns_are_the_message(cluster: Cluster, topic: str) -> None:
    started = time.time()
    send(cluster, topic, ["x"], tag="paid", keys=["a", "b"], properties={"region": "eu"})
    reader = reader_of(cluster, subscribe=topic)
    (row,) = rows(reader, reader.partitions())
    assert started - 1 < row.pop("bornTimestamp").timestamp() < time.time() + 1
    assert started - 1 < row.pop("storeTimestamp").timestamp() < time.time() + 1
    assert row.pop("bornHost").startswith("127.0.0.1:")
    assert len(row.pop("messageId")) == 32
    assert row == {
        "topic": topic,
        "brokerName": "broker-0",
        "queueId": 0,
        "queueOffset": 0,
        "body": b"x",
        "tags": "paid",
        "keys": "a b",
        "properties": [("region", "eu")],
        "reconsumeTimes": 0,
    }


def test_a_schema_prunes_columns_and_what_it_cannot_have_is_named(
    cluster: Cluster, topic: str
) -> None:
    send(cluster, topic, ["x"])
    reader = reader_of(cluster, StructType().add("BODY", "binary"), subscribe=topic)
    assert list(rows(reader, reader.partitions())) == [{"BODY": b"x"}]
    with pytest.raises(InvalidInput, match="unknown column 'value'"):
        reader_of(cluster, StructType().add("value", "binary"), subscribe=topic)
    with pytest.raises(InvalidInput, match="'queueId' must be int, not string"):
        reader_of(cluster, StructType().add("queueId", "string"), subscribe=topic)


def test_more_tasks_can_be_asked_for(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(100))
    reader = reader_of(cluster, subscribe=topic, minPartitions=7)
    assert len(reader.partitions()) == 7
    assert bodies(reader, reader.partitions()) == [str(n) for n in range(100)]
    assert len(reader_of(cluster, subscribe=topic, maxRecordsPerPartition=30).partitions()) == 4


def test_reading_begins_and_ends_where_it_is_told(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(10))
    offsets = f'{{"{topic}": {{"broker-0": {{"0": %d}}}}}}'
    first, end = offsets % 3, offsets % 6
    reader = reader_of(cluster, subscribe=topic, startingOffsets=first, endingOffsets=end)
    assert bodies(reader, reader.partitions()) == ["3", "4", "5"]
    nothing = reader_of(cluster, subscribe=topic, startingOffsets=end, endingOffsets=end)
    assert bodies(nothing, nothing.partitions()) == []


def test_times_are_places_too(cluster: Cluster, topic: str) -> None:
    before = int(time.time() * 1000) - 60_000
    send(cluster, topic, range(3))
    later = int(time.time() * 1000) + 60_000
    for start, end, count in ((before, later, 3), (later, later, 0), (before, before, 0)):
        reader = reader_of(cluster, subscribe=topic, startingTimestamp=start, endingTimestamp=end)
        assert len(bodies(reader, reader.partitions())) == count


def test_offsets_that_a_queue_does_not_hold_are_named(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(10))
    beyond = f'{{"{topic}": {{"broker-0": {{"0": 12}}}}}}'
    with pytest.raises(DataLost, match=r"queue 0 of topic .* says 12, and it holds 0 to 9") as lost:
        reader_of(cluster, subscribe=topic, startingOffsets=beyond).partitions()
    assert (lost.value.first, lost.value.end) == (10, 12)
    lenient = reader_of(cluster, subscribe=topic, startingOffsets=beyond, failOnDataLoss="false")
    assert bodies(lenient, lenient.partitions()) == []


def test_offsets_of_queues_that_are_not_there_are_refused(cluster: Cluster, topic: str) -> None:
    strange = f'{{"{topic}": {{"broker-9": {{"0": 1}}}}}}'
    with pytest.raises(OptionInvalid, match=r"'startingOffsets' names .*broker-9"):
        reader_of(cluster, subscribe=topic, startingOffsets=strange).partitions()


def test_topics_are_named_matched_or_assigned(cluster: Cluster, topic: str) -> None:
    other = cluster.create_topic(f"{topic}-more", queues=1)
    send(cluster, topic, ["a"], queue=0)
    send(cluster, topic, ["b"], queue=1)
    send(cluster, other, ["c"])
    assigned = f'{{"{topic}": {{"broker-0": [1]}}}}'
    for option, value, found in (
        ("subscribe", f"{topic},{other}", ["a", "b", "c"]),
        ("subscribePattern", f"{topic}.*", ["a", "b", "c"]),
        ("subscribePattern", topic, ["a", "b"]),
        ("assign", assigned, ["b"]),
    ):
        reader = reader_of(cluster, None, **{option: value})
        assert bodies(reader, reader.partitions()) == found, option


def test_a_topic_that_nobody_knows_is_named(cluster: Cluster) -> None:
    with pytest.raises(OptionInvalid, match="no route for topic 'no-such-topic'"):
        reader_of(cluster, subscribe="no-such-topic").partitions()
    assert reader_of(cluster, subscribePattern="no-such-.*").partitions()[0].value == ()


def test_names_that_are_not_there_are_refused_with_the_nearest_guess(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    send(cluster, topic, ["a"])
    wrong = f"{topic[:-1]}"
    with pytest.raises(
        OptionInvalid, match=f"no route for topic '{wrong}'; did you mean '{topic}'"
    ):
        reader_of(cluster, subscribe=f"{topic},{wrong}").partitions()
    for assigned, reason in (
        (
            f'{{"{topic}": {{"broker-0": [0, 7]}}}}',
            "names queue 7 of topic .* there are queues 0 to 1",
        ),
        (f'{{"{topic}": {{"brokr-0": [0]}}}}', "did you mean broker 'broker-0'"),
        (f'{{"{wrong}": {{"broker-0": [0]}}}}', f"did you mean '{topic}'"),
    ):
        with pytest.raises(OptionInvalid, match=reason):
            reader_of(cluster, None, assign=assigned).partitions()
    assert not [each for each in caplog.records if each.name == "pocketmq.spark"]
    lenient = reader_of(cluster, subscribe=f"{topic},{wrong}", failOnDataLoss="false")
    assert bodies(lenient, lenient.partitions()) == ["a"]
    assert f"no route for topic '{wrong}'" in caplog.text
    with pytest.raises(OptionInvalid, match="no route"):
        reader_of(cluster, subscribe=wrong, failOnDataLoss="false").partitions()


def test_a_start_after_the_end_is_refused(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(9))
    offsets = f'{{"{topic}": {{"broker-0": {{"0": %d}}}}}}'
    start, end = offsets % 8, offsets % 3
    with pytest.raises(
        OptionInvalid, match=r"'startingOffsets' makes .* start after its end: 8 > 0"
    ):
        reader_of(cluster, subscribe=topic, startingOffsets=start, endingTimestamp=5).partitions()
    later = int(time.time() * 1000) + 30_000
    with pytest.raises(OptionInvalid, match=r"'endingOffsets' makes .* start after its end: 9 > 3"):
        reader_of(cluster, subscribe=topic, startingTimestamp=later, endingOffsets=end).partitions()


def test_times_are_given_by_queue_too(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, ["a"])
    send(cluster, topic, ["b"], queue=1)
    later = int(time.time() * 1000) + 30_000
    times = f'{{"{topic}": {{"broker-0": {{"0": {later}}}}}}}'
    reader = reader_of(cluster, subscribe=topic, startingOffsetsByTimestamp=times)
    assert bodies(reader, reader.partitions()) == ["b"]
    times = times.replace(str(later), "5")
    reader = reader_of(cluster, subscribe=topic, endingOffsetsByTimestamp=times)
    assert bodies(reader, reader.partitions()) == ["b"]
    strange = times.replace('"0"', '"9"')
    with pytest.raises(OptionInvalid, match="not among the queues read"):
        reader_of(cluster, subscribe=topic, endingOffsetsByTimestamp=strange).partitions()


def test_a_group_s_offsets_are_a_start(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(5))
    send(cluster, topic, ["other queue"], queue=1)
    group = f"g-{topic}"
    with RecordReader(ClientOptions(name_servers=cluster.address)) as reader:
        reader.introduce(group, [topic])
        reader.commit(group, MessageQueue(topic, "broker-0", 0), 3)
    started = reader_of(cluster, subscribe=topic, startingOffsets="group", groupId=group)
    assert bodies(started, started.partitions()) == ["3", "4", "other queue"]


def test_the_queues_of_brokers_that_are_down_are_missed() -> None:
    """The name server lists them no more, but remembers them."""
    with Cluster(brokers=3) as three:
        topic = three.create_topic("orders", queues=2)
        for broker in range(3):
            with Producer(three.address, group="tests", send_timeout=30.0) as producer:
                place = MessageQueue(topic, f"broker-{broker}", 0)
                producer.send_batch([Message(topic, b"x")] * (broker + 1), queue=place)
        options = {"retryTimeout": "300ms"}
        whole = reader_of(three, None, subscribe=topic, **options)
        assert len(bodies(whole, whole.partitions())) == 6
        three.kill("broker-1")
        for selection in (
            {"subscribe": topic},
            {"subscribePattern": "ord.*"},
            {"assign": '{"orders": {"broker-0": [0], "broker-1": [0, 1]}}'},
        ):
            strict = reader_of(three, None, **selection, **options)
            missed = r"queue 0 of topic 'orders' on broker 'broker-1' .* well: queue 1 of topic"
            with pytest.raises(DataLost, match=missed):
                strict.partitions()
            lenient = reader_of(three, None, **selection, failOnDataLoss="false", **options)
            assert len(bodies(lenient, lenient.partitions())) in (1, 4)
        three.kill("broker-0")
        three.kill("broker-2")
        for selection in ({"subscribe": topic}, {"subscribePattern": "ord.*"}):
            with pytest.raises(DataLost, match=r"'broker-0' .* missing as well: .* 'broker-2'"):
                reader_of(three, None, **selection, **options).partitions()


def test_a_broker_that_is_back_in_time_is_waited_for(tmp_path: Path) -> None:
    with Cluster(brokers=2, data=tmp_path) as two:
        topic = two.create_topic("orders", queues=1)
        with Producer(two.address, group="tests", send_timeout=30.0) as producer:
            for broker in range(2):
                place = MessageQueue(topic, f"broker-{broker}", 0)
                producer.send(Message(topic, b"x"), queue=place)
        two.kill("broker-1")
        reader = reader_of(two, subscribe=topic, retryTimeout="60s")
        timer = threading.Timer(0.5, two.restart, ["broker-1"])
        timer.start()
        assert len(bodies(reader, reader.partitions())) == 2
        timer.join()


def test_a_task_names_the_queue_whose_broker_is_gone() -> None:
    with Cluster() as one:
        topic = one.create_topic("orders", queues=1)
        send(one, topic, range(3))
        options = {"retryTimeout": "200ms"}
        strict = reader_of(one, None, subscribe=topic, **options)
        lenient = reader_of(one, None, subscribe=topic, failOnDataLoss="false", **options)
        tasks = strict.partitions()
        one.kill("broker-0")
        with pytest.raises(
            DataLost, match=r"offsets 0 to 2 of queue 0 .* does not respond for 0\.2 s"
        ):
            bodies(strict, tasks)
        assert bodies(lenient, tasks) == []


def test_brokers_filter_by_tags_and_by_sql(cluster: Cluster, topic: str) -> None:
    for number, tag in enumerate(["Aa", "BB", "other"]):  # the first two have the same hash
        send(cluster, topic, [number], tag=tag, properties={"n": str(number)})
    tagged = reader_of(cluster, subscribe=topic, tags="BB || other")
    assert bodies(tagged, tagged.partitions()) == ["1", "2"]
    chosen = reader_of(cluster, subscribe=topic, sql="n < 2")
    assert bodies(chosen, chosen.partitions()) == ["0", "1"]


def test_a_range_that_is_gone_is_named_or_passed_over(cluster: Cluster, topic: str) -> None:
    """The queue was longer when the query was planned."""
    send(cluster, topic, range(5))
    reader = reader_of(cluster, subscribe=topic)
    ((task,),) = ([each for each in reader.partitions() if isinstance(each, Task)],)
    (planned,) = task.ranges
    longer = Task((Range(planned.queue, 0, 9),))
    with pytest.raises(DataLost, match="its end is 5 now") as lost:
        bodies(reader, [longer])
    assert (lost.value.first, lost.value.end) == (5, 9)
    lenient = reader_of(cluster, subscribe=topic, failOnDataLoss="false")
    assert bodies(lenient, [longer]) == ["0", "1", "2", "3", "4"]


def test_a_reader_that_is_left_in_the_middle_leaves_no_thread(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(9000))
    reader = reader_of(cluster, subscribe=topic, pullMessages=500, batchRows=500)
    batches = reader.read(reader.partitions()[0])
    next(batches)
    batches.close()  # type: ignore[union-attr]
    wait_for(
        lambda: all(thread.name != "pocketmq-prefetch" for thread in threading.enumerate()),
        "the end of the thread",
    )


def test_errors_of_the_prefetching_thread_reach_the_task(cluster: Cluster, topic: str) -> None:
    reader = reader_of(cluster, subscribe=topic, failOnDataLoss="false")
    strange = Task((Range(MessageQueue(topic, "broker-0", 99), 0, 10_000),))
    with pytest.raises(MQError, match="illegal"):
        bodies(reader, [strange])
