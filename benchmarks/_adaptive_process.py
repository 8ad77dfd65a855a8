"""One producer of the adaptive benchmark: sends at a fixed rate, and tells what became of it.

python -m benchmarks._adaptive_process ADDRESS CHOICE SHELL TOPIC RATE

Prints `ready`, begins with the first line of its input, and ends with the next. Then prints a JSON
list of [when, seconds it took, broker or null for an error] for each message.
"""

import asyncio
import itertools
import json
import sys
import threading
import time

import pocketmq as mq
from pocketmq import aio

THREADS = 8
Row = tuple[float, float, str | None]


STOP = threading.Event()


def wait_for_all() -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=wait_for_end, daemon=True).start()


def wait_for_end() -> None:
    sys.stdin.readline()
    STOP.set()


async def by_loop(address: str, choice: str, topic: str, rate: float) -> list[Row]:
    rows: list[Row] = []

    async def send(number: int) -> None:
        began, broker = time.monotonic(), None
        try:
            message = mq.Message(topic, f"{number}".encode())
            broker = (await producer.send(message)).queue.broker_name
        except mq.MQError:
            pass
        rows.append((began, time.monotonic() - began, broker))

    async with aio.Producer(address, group=topic, queue_choice=choice) as producer:  # type: ignore[arg-type]
        await producer.queues(topic)
        await asyncio.to_thread(wait_for_all)
        began, tasks = time.monotonic(), []
        for number in itertools.count():
            if STOP.is_set():
                break
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            tasks.append(asyncio.create_task(send(number)))
        await asyncio.gather(*tasks)
    return rows


def by_threads(address: str, choice: str, topic: str, rate: float) -> list[Row]:
    rows: list[Row] = []

    def run(number: int) -> None:
        due = time.monotonic() + number / rate
        while not STOP.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            sent, broker = time.monotonic(), None
            try:
                message = mq.Message(topic, f"{number}-{sent}".encode())
                broker = producer.send(message).queue.broker_name
            except mq.MQError:
                pass
            rows.append((sent, time.monotonic() - sent, broker))
            due = max(due + THREADS / rate, time.monotonic())

    with mq.Producer(address, group=topic, queue_choice=choice) as producer:  # type: ignore[arg-type]
        producer.queues(topic)
        wait_for_all()
        threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return rows


def main() -> None:
    address, choice, shell, topic, rate = sys.argv[1:]
    if shell == "asyncio":
        rows = asyncio.run(by_loop(address, choice, topic, float(rate)))
    else:
        rows = by_threads(address, choice, topic, float(rate))
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
