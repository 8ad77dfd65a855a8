"""Messages from topic to topic: the same again, each where it belongs, and on from where it ended."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pocketmq as mq
from pocketmq.errors import InvalidInput, PipelineFailed
from pocketmq.pipelines.copy import CopyProgress, CopySettings, copy_topics
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.schema import full_schema
from tests.spark.topics import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Told = tuple[bytes, str | None, str | None, tuple[tuple[str, str], ...]]


@pytest.fixture(scope="module")
def other() -> Iterator[mq.Cluster]:
    with mq.Cluster() as running:
        yield running


def stored(address: str, topic: str) -> list[dict[str, object]]:
    reader = batch_reader({"nameServer": address, "subscribe": topic}, full_schema())
    return list(rows(reader, reader.partitions()))


def told(address: str, topic: str) -> list[Told]:
    """Return what was said, in any order, without where and when."""
    return sorted(
        (row["body"], row["tags"], row["keys"], tuple(row["properties"]))  # type: ignore[misc,arg-type]
        for row in stored(address, topic)
    )


def send(address: str, topic: str, first: int, count: int) -> None:
    with mq.Producer(address, group="tests", send_timeout=30.0) as producer:
        for number in range(first, first + count):
            message = mq.Message(
                topic,
                b"%d" % number,
                tag="even" if number % 2 == 0 else None,
                keys=[f"k{number}"],
                properties={"n": str(number)},
            )
            producer.send(message, ordering_key=f"customer-{number % 5}")


def test_a_copy_says_the_same_and_goes_on_where_it_ended(
    spark: "SparkSession", cluster: mq.Cluster, other: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    """To another cluster, under the same name, each queue in order."""
    other.create_topic(topic, 4)
    seen: list[CopyProgress] = []
    for first in (0, 30):
        send(cluster.address, topic, first, 30)
        done = copy_topics(
            spark,
            cluster.address,
            [topic],
            to_name_server=other.address,
            checkpoint=tmp_path,
            settings=CopySettings(once=True, keep_order=True),
            progress=seen.append,
        )
        assert (done.messages, seen[-1].messages) == (30, 30)
    assert told(other.address, topic) == told(cluster.address, topic)
    of_key: dict[int, list[tuple[int, int, int]]] = {}
    for row in stored(other.address, topic):
        number = int(row["body"])  # type: ignore[call-overload]
        place = (row["queueId"], row["queueOffset"], number)
        of_key.setdefault(number % 5, []).append(place)  # type: ignore[arg-type]
    for key, found in of_key.items():
        assert [number for *_, number in sorted(found)] == list(range(key, 60, 5))
        assert len({queue for queue, *_ in found}) == 1


def test_messages_of_transactions_are_copied_as_plain_ones(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    """What RocketMQ has noted about them stays behind; each is copied once, by transactions."""
    with mq.Producer(cluster.address, group="tests", send_timeout=30.0) as producer:
        for body in (b"a", b"b"):
            producer.send_in_transaction(
                mq.Message(topic, body, properties={"region": "eu"}),
                lambda _message, _id: mq.TransactionState.COMMIT,
            )
    target = cluster.create_topic(f"{topic}-copy", 2)
    for _ in range(2):
        copy_topics(
            spark,
            cluster.address,
            [topic],
            to_name_server=cluster.address,
            checkpoint=tmp_path,
            settings=CopySettings(to_topic=target, once=True, exactly_once=True),
        )
    assert [row[0] for row in told(cluster.address, target)] == [b"a", b"b"]
    for row in stored(cluster.address, target):
        assert dict(row["properties"])["region"] == "eu"  # type: ignore[call-overload]


def test_a_copy_that_goes_on_ends_when_it_is_told(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    send(cluster.address, topic, 0, 10)
    target = cluster.create_topic(f"{topic}-copy", 2)
    stop = threading.Event()

    def enough(now: CopyProgress) -> None:
        if now.messages == 10:
            stop.set()

    done = copy_topics(
        spark,
        cluster.address,
        [topic],
        to_name_server=cluster.address,
        checkpoint=tmp_path,
        settings=CopySettings(to_topic=target, every=0.1),
        progress=enough,
        stop=stop,
    )
    assert done.messages == 10
    assert told(cluster.address, target) == told(cluster.address, topic)


def test_priorities_are_copied_and_progress_names_the_lag(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    """The broker of the copy selects the queue of each priority; other messages go anywhere."""
    with mq.Producer(cluster.address, group="tests", send_timeout=30.0) as producer:
        for number in range(10):
            priority = number % 3 if number % 2 else None
            producer.send(mq.Message(topic, b"%d" % number, priority=priority))
    target = cluster.create_topic(f"{topic}-copy", 3, message_type="PRIORITY")
    seen: list[CopyProgress] = []
    copy_topics(
        spark,
        cluster.address,
        [topic],
        to_name_server=cluster.address,
        checkpoint=tmp_path,
        settings=CopySettings(to_topic=target, once=True, largest_batch=6),
        progress=seen.append,
    )
    found = {
        int(row["body"]): (row["queueId"], dict(row["properties"]).get("_SYS_MSG_PRIORITY_"))  # type: ignore[call-overload]
        for row in stored(cluster.address, target)
    }
    assert sorted(found) == list(range(10))
    for number in range(1, 10, 2):
        assert found[number] == (number % 3, str(number % 3))
    assert {found[number][1] for number in range(0, 10, 2)} == {None}
    known = {(now.messages, now.behind) for now in seen if now.behind is not None}
    assert known >= {(10, 0)}
    assert known <= {(6, 4), (10, 0)}


def test_a_topic_is_not_copied_to_itself(spark: "SparkSession", tmp_path: Path) -> None:
    for settings in (CopySettings(), CopySettings(to_topic="orders")):
        with pytest.raises(InvalidInput, match="cannot be copied to itself"):
            copy_topics(
                spark,
                "127.0.0.1:9876",
                ["orders", "bills"],
                to_name_server="127.0.0.1:9876",
                checkpoint=tmp_path,
                settings=settings,
            )


def test_what_stops_a_copy_is_told_in_words(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    with pytest.raises(PipelineFailed, match="option 'subscribr' is unknown"):
        copy_topics(
            spark,
            cluster.address,
            [topic],
            to_name_server=cluster.address,
            checkpoint=tmp_path,
            settings=CopySettings(to_topic="elsewhere", once=True, from_options={"subscribr": "x"}),
        )
