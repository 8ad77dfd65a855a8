"""One producer of the adaptive benchmark: sends at a fixed rate, and tells what became of it.

python -m benchmarks._adaptive_process ADDRESS CHOICE SHELL TOPIC RATE SECONDS

Prints a JSON list of [when, seconds it took, broker or null for an error] for each message.
"""

import asyncio
import json
import sys
import threading
import time

import pocketmq as mq
from pocketmq import aio

THREADS = 8
Row = tuple[float, float, str | None]


async def by_loop(address: str, choice: str, topic: str, rate: float, seconds: float) -> list[Row]:
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
        began, tasks = time.monotonic(), []
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            tasks.append(asyncio.create_task(send(number)))
        await asyncio.gather(*tasks)
    return rows


def by_threads(address: str, choice: str, topic: str, rate: float, seconds: float) -> list[Row]:
    rows: list[Row] = []

    def run(number: int) -> None:
        began = due = time.monotonic() + number / rate
        while due < began + seconds:
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
        threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return rows


def main() -> None:
    address, choice, shell, topic, rate, seconds = sys.argv[1:]
    if shell == "asyncio":
        rows = asyncio.run(by_loop(address, choice, topic, float(rate), float(seconds)))
    else:
        rows = by_threads(address, choice, topic, float(rate), float(seconds))
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
