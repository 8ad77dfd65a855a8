"""Senders of small micro-batches, spread over the queues of a topic; ours and Kafka's."""

from collections.abc import Callable
from importlib import import_module

from pocketmq import Message, Producer

SMALL = 80


def kafka_sender(address: str, topic: str, queues: int) -> Callable[[], None]:
    """Return what sends a small micro-batch, spread over all partitions."""
    producer = import_module("confluent_kafka").Producer(
        {"bootstrap.servers": address, "linger.ms": 0}
    )

    def send() -> None:
        for number in range(SMALL):
            producer.produce(topic, b"x" * 100, partition=number % queues)
        producer.flush()

    return send


def our_sender(address: str, topic: str, queues: int) -> Callable[[], None]:
    """Return what sends a small micro-batch, spread over as many queues."""
    producer = Producer(address, group="bench").start()
    places = producer.queues(topic)[:SMALL]
    messages = [Message(topic, b"x" * 100)] * (SMALL // min(queues, SMALL))

    def send() -> None:
        for place in places:
            producer.send_batch(messages, queue=place)

    return send
