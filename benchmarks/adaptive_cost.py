"""What the adaptive choice of queues costs: CPU of the producer's process for each message.

python -m benchmarks.adaptive_cost [seconds for each round]

A cluster of two brokers in processes of its own. Java's choice and the adaptive one take turns; a
cost is the least of the rounds, and the ratio says what healthy brokers' users pay.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pocketmq as mq
from benchmarks.producer import BODY, TOPIC, Story, batcher, submitter, worker
from pocketmq.client.producer.producer import Producer
from pocketmq.model import Message

ROUNDS = 9
CHOICES = ("java", "adaptive")


@contextmanager
def cluster() -> Iterator[str]:
    command = [sys.executable, "-m", "pocketmq", "up", "--memory", "--port", "0"]
    child = subprocess.Popen(
        [*command, "--brokers", "2"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout is not None
    try:
        words = child.stdout.readline().split()
        yield next(word for word in words if word.startswith("namesrv=")).removeprefix("namesrv=")
    finally:
        child.terminate()
        child.wait(30)


def cost(work: Callable[[], int]) -> float:
    cpu = time.process_time()
    done = work()
    return (time.process_time() - cpu) / done * 1e6


def run(runner: asyncio.Runner, story: Story, producer: Producer, until: float) -> int:
    async def tell() -> int:
        return await story(producer, until)

    return runner.run(tell())


def on_loop(address: str, story: Story, seconds: float) -> list[float]:
    best = [1e9, 1e9]
    with asyncio.Runner() as runner:

        async def start(choice: str) -> Producer:
            producer = Producer(address, group=choice, queue_choice=choice)  # type: ignore[arg-type]
            return await producer.start()

        producers = [runner.run(start(choice)) for choice in CHOICES]
        for count in range(ROUNDS + 1):
            for side, producer in enumerate(producers):
                until = time.perf_counter() + seconds
                found = cost(lambda each=producer, end=until: run(runner, story, each, end))  # type: ignore[misc]
                if count:
                    best[side] = min(best[side], found)
        for producer in producers:
            runner.run(producer.close())
    return best


def blocking(address: str, seconds: float) -> list[float]:
    best = [1e9, 1e9]
    made = [mq.Producer(address, group=f"b-{each}", queue_choice=each) for each in CHOICES]  # type: ignore[arg-type]

    def send(producer: mq.Producer, until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            for _ in range(8):
                producer.send(Message(TOPIC, BODY))
            done += 8
        return done

    with made[0], made[1]:
        for count in range(ROUNDS + 1):
            for side, producer in enumerate(made):
                until = time.perf_counter() + seconds
                found = cost(lambda each=producer, end=until: send(each, end))  # type: ignore[misc]
                if count:
                    best[side] = min(best[side], found)
    return best


def show(name: str, costs: list[float]) -> None:
    java, adaptive = costs
    print(
        f"{name:28}{java:9.2f}{adaptive:10.2f}{adaptive - java:+9.2f}{adaptive / java:8.3f}",
        flush=True,
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.25
    print(
        f"{'CPU µs for each message':28}{'java':>9}{'adaptive':>10}{'more':>9}{'ratio':>8}",
        flush=True,
    )
    with cluster() as address:
        with mq.Producer(address, group="first") as producer:
            for queue in producer.queues("TBW102"):  # make the topic on both brokers
                place = mq.MessageQueue(TOPIC, queue.broker_name, queue.queue_id)
                if place in producer.queues(TOPIC):
                    producer.send(Message(TOPIC, BODY), queue=place)
        show("send, one at a time", on_loop(address, worker(1), seconds))
        show("send, 64 in flight", on_loop(address, worker(64), seconds))
        show("submit, 64 at once", on_loop(address, submitter(64), seconds))
        show("batches of 32", on_loop(address, batcher(32), seconds))
        show("blocking send", blocking(address, seconds))


if __name__ == "__main__":
    main()
