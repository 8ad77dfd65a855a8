"""Damaged records under a Spark source: an error that names them, or a query without them."""

from collections.abc import Iterator

import pytest
from pyspark.sql.types import StructType

import pocketmq as mq
from pocketmq import Cluster, Message, MessageQueue
from pocketmq.errors import DataLost
from pocketmq.spark.options import Reach
from pocketmq.spark.planning import Range
from pocketmq.spark.reading import read_ranges
from pocketmq.spark.records import RowSelection
from pocketmq.spark.schema import arrow_schema, full_schema, wanted_columns
from pocketmq.spark.source_options import PullOptions
from tests.damaged_wire import BODY, SIZE, damaging

QUEUE = MessageQueue("damaged", "broker-0", 0)
BAD = {0: BODY, 7: SIZE, 8: BODY, 20: SIZE, 21: SIZE, 39: BODY}


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    with Cluster() as cluster:
        cluster.create_topic(QUEUE.topic, queues=1)
        with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
            for n in range(40):
                producer.send(Message(QUEUE.topic, BAD.get(n, b"") + b"%03d" % n))
        with damaging(cluster) as address:
            yield address


def read(names: str, start: int, end: int, *, strict: bool) -> list[bytes]:
    schema = StructType([field for field in full_schema().fields if field.name == "body"])
    wanted = RowSelection(wanted_columns(schema), arrow_schema(schema), strict=strict)
    pulling = PullOptions(Reach(name_servers=names), fail_on_data_loss=strict)
    batches = read_ranges([Range(QUEUE, start, end)], wanted, pulling)
    return [row["body"] for batch in batches for row in batch.to_pylist()]


def test_without_fail_on_data_loss_all_sound_messages_are_read_once(
    names: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert read(names, 0, 40, strict=False) == [b"%03d" % n for n in range(40) if n not in BAD]
    told = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    start = "damaged message skipped: topic=damaged queue=broker-0:0 offset="
    assert [int(text.removeprefix(start).split()[0]) for text in told] == list(BAD)


@pytest.mark.parametrize("bad", [7, 8, 39])
def test_with_fail_on_data_loss_the_error_names_queue_and_offset(names: str, bad: int) -> None:
    where = f"offsets {bad} to {bad} of queue 0 of topic 'damaged' on broker 'broker-0'"
    with pytest.raises(DataLost, match=f"{where} cannot be read: the stored record is damaged"):
        read(names, max(bad - 3, 4 if bad < 8 else bad), 40, strict=True)


def test_ranges_without_damage_are_read_as_ever(names: str) -> None:
    assert read(names, 9, 20, strict=True) == [b"%03d" % n for n in range(9, 20)]
