"""Senders of small micro-batches, spread over the queues of a topic; ours and Kafka's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from pocketmq import Message, Producer

SMALL = 80


@contextmanager
def kafka_sender(address: str, topic: str, queues: int) -> Iterator[Callable[[], None]]:
    """Yield what sends a small micro-batch, spread over all partitions."""
    producer = import_module("confluent_kafka").Producer(
        {"bootstrap.servers": address, "linger.ms": 0}
    )

    def send() -> None:
        for number in range(SMALL):
            producer.produce(topic, b"x" * 100, partition=number % queues)
        producer.flush()

    yield send


@contextmanager
def our_sender(address: str, topic: str, queues: int) -> Iterator[Callable[[], None]]:
    """Yield what sends a small micro-batch, spread over as many queues."""
    with Producer(address, group="bench") as producer:
        places = producer.queues(topic)[:SMALL]
        messages = [Message(topic, b"x" * 100)] * (SMALL // min(queues, SMALL))

        def send() -> None:
            for place in places:
                producer.send_batch(messages, queue=place)

        yield send
