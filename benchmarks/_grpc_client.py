"""Apache's Python client, as a process of its own: does what each line on its input says.

A line is `send COUNT`, `burst COUNT` (64 in flight) or `receive COUNT`; the answer is
`done SECONDS`.

python -m benchmarks._grpc_client ENDPOINT TOPIC GROUP
"""

import logging
import sys
import time
from concurrent.futures import Future
from typing import Any

import rocketmq

IN_FLIGHT = 64
BODY = bytes(range(256))


class Load:
    """A producer and a simple consumer of one topic."""

    def __init__(self, endpoint: str, topic: str, group: str) -> None:
        own = rocketmq.ClientConfiguration(endpoint, rocketmq.Credentials())
        self._topic = topic
        self._wanted = self._got = 0
        self._producer = rocketmq.Producer(own, (topic,))
        self._consumer = rocketmq.SimpleConsumer(own, group, await_duration=5)

    def start(self) -> None:
        self._producer.startup()
        self._consumer.startup()
        self._consumer.subscribe(self._topic)

    def send(self, count: int) -> None:
        for _ in range(count):
            self._producer.send(self._message())

    def burst(self, count: int) -> None:
        waiting: list[Future[Any]] = []
        for number in range(count):
            if number >= IN_FLIGHT:
                waiting[number - IN_FLIGHT].result()
            waiting.append(self._producer.send_async(self._message()))
        for each in waiting:
            each.result()

    def receive(self, count: int) -> None:
        self._wanted += count
        while self._got < self._wanted:  # the last call may bring more, which count for the next
            for message in self._consumer.receive(32, 60):
                self._consumer.ack(message)
                self._got += 1

    def stop(self) -> None:
        self._producer.shutdown()
        self._consumer.shutdown()

    def _message(self) -> Any:
        message = rocketmq.Message()
        message.topic, message.body, message.tag = self._topic, BODY, "t"
        return message


def main() -> None:
    logging.disable()
    load = Load(*sys.argv[1:])
    load.start()
    print("ready", flush=True)
    for line in sys.stdin:
        order, count = line.split()
        began = time.monotonic()
        getattr(load, order)(int(count))
        print("done", time.monotonic() - began, flush=True)
    load.stop()


if __name__ == "__main__":
    main()
