"""What the tests of readers share: a cluster of the process, and messages in it."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from pocketmq import Cluster, Message, MessageQueue, Producer


def send(
    cluster: Cluster, topic: str, bodies: Iterable[int | str], queue: int = 0, **more: Any
) -> None:
    """Send messages to one queue of the first broker, one request for all of them."""
    place = MessageQueue(topic, "broker-0", queue)
    messages = [Message(topic, str(body).encode(), **more) for body in bodies]
    with Producer(cluster.address, group="tests", send_timeout=30.0) as producer:
        producer.send_batch(messages, queue=place, split=True)


def rows(
    reader: DataSourceReader | DataSourceStreamReader, tasks: Iterable[InputPartition]
) -> Iterator[dict[str, Any]]:
    """Read tasks as executors do."""
    for task in tasks:
        for batch in reader.read(task):
            yield from batch.to_pylist()  # type: ignore[union-attr]


def bodies(
    reader: DataSourceReader | DataSourceStreamReader, tasks: Iterable[InputPartition]
) -> list[str]:
    """Return the bodies of tasks as text."""
    return [row["body"].decode() for row in rows(reader, tasks)]
