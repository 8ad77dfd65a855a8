"""confluent-kafka under load, told what to do by lines on its input; a twin of `_load`.

python -m benchmarks.java._kafka_load BROKER
"""

import sys
import time
from importlib import import_module
from typing import Any

from benchmarks.java._load_lines import say

BODY = b"x" * 100


class KafkaLoad:
    """A producer, and consumers as they are asked for; defaults but for `acks`."""

    def __init__(self, broker: str) -> None:
        self._client: Any = import_module("confluent_kafka")  # not installed with the project
        self._broker = {"bootstrap.servers": broker}
        self._producer = self._client.Producer({**self._broker, "acks": 1})
        self._stored = 0

    def _delivered(self, error: object, _: object) -> None:
        assert error is None, error
        self._stored += 1

    def _produce(self, topic: str) -> None:
        while True:
            try:
                self._producer.produce(topic, BODY, on_delivery=self._delivered)
            except BufferError:  # its queue is full
                self._producer.poll(0.01)
            else:
                return

    def submit(self, topic: str, seconds: str) -> None:
        self._stored, start = 0, time.perf_counter()
        end = start + float(seconds)
        while time.perf_counter() < end:
            for _ in range(64):
                self._produce(topic)
            self._producer.poll(0)
        self._producer.flush()
        say("done", self._stored, time.perf_counter() - start)

    def fill(self, topic: str, count: str) -> None:
        self._stored, start = 0, time.perf_counter()
        for _ in range(int(count)):
            self._produce(topic)
        self._producer.flush()
        say("done", self._stored, time.perf_counter() - start)

    def consume(self, topic: str, group: str, count: str, size: str) -> None:
        """Take a backlog, one message a call or several; report as `_load` does."""
        wanted, most, seen, began = int(count), int(size), 0, 0.0
        start = {"group.id": group, "auto.offset.reset": "earliest"}
        consumer = self._client.Consumer({**self._broker, **start})
        consumer.subscribe([topic])
        while seen < wanted:
            if most > 1:
                messages = consumer.consume(min(most, wanted - seen), 0.1)
            else:
                message = consumer.poll(0.1)
                messages = () if message is None else (message,)
            for each in messages:
                assert each.error() is None, each.error()
            before, seen = seen, seen + len(messages)
            if before < wanted // 8 <= seen:
                began = time.perf_counter()
                say("begun")
        say("done", wanted - wanted // 8, time.perf_counter() - began)
        consumer.close()
        say("closed")


def main() -> None:
    load = KafkaLoad(sys.argv[1])
    say("ready")
    while line := sys.stdin.readline():
        word, *more = line.split()
        getattr(load, word)(*more)


if __name__ == "__main__":
    main()
