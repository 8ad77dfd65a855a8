"""Sends and receives in every way, on the cluster whose address is given; prints what came."""

import asyncio
import signal
import sys

import pocketmq as mq
from pocketmq import aio


def _blocking(address: str) -> None:
    with mq.Producer(address, group="shop") as producer:
        producer.send(mq.Message("blocking", b"sent"))
        producer.submit(mq.Message("blocking", b"submitted"))
        producer.flush()
    with mq.PullConsumer(address, group="pulls", consume_from="first") as consumer:
        consumer.subscribe("blocking", "*")
        bodies: list[bytes] = []
        while len(bodies) < 2:
            bodies += [message.body for message in consumer.poll()]
    print("pulled", *sorted(body.decode() for body in bodies))
    pushed = mq.PushConsumer(address, group="pushes", consume_from="first")

    def handle(message: mq.ReceivedMessage) -> None:
        if message.body == b"sent":
            print("pushed", message.body.decode())
            signal.raise_signal(signal.SIGINT)  # Ctrl-C

    pushed.subscribe("blocking", "*", handle)
    pushed.run()
    print("stopped")


async def _asyncio(address: str) -> None:
    async with aio.Producer(address, group="shop") as producer:
        await producer.send(mq.Message("asyncio", b"sent"))
    came = asyncio.Event()

    async def handle(message: mq.ReceivedMessage) -> None:
        print("awaited", message.body.decode())
        came.set()

    consumer = aio.PushConsumer(address, group="pushes", consume_from="first")
    consumer.subscribe("asyncio", "*", handle)
    running = asyncio.ensure_future(consumer.run())
    await came.wait()
    await consumer.close()
    await running


if __name__ == "__main__":
    _blocking(sys.argv[1])
    asyncio.run(_asyncio(sys.argv[1]))
