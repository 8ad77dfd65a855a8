"""A blocking POP consumer, and brokers on a loop of their own that hand messages out."""

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pocketmq as mq
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from tests.client.pop.shelves import Shelf
from tests.client.servers import Directory, broker, route
from tests.net.peers import serving


class Served:
    """Shelves on a loop of their own, and a blocking consumer of them."""

    def __init__(self, thread: LoopThread, consumer: mq.PopConsumer) -> None:
        self._thread = thread
        self.consumer = consumer

    def do(self, work: Callable[[], object]) -> None:
        """Call a function on the servers' loop, and wait until that is done."""

        async def run() -> None:
            work()

        self._thread.call(run())


@contextmanager
def shelved(*shelves: Shelf, expression: str = "*", **settings: Any) -> Iterator[Served]:
    thread, stack = LoopThread("shelves"), AsyncExitStack()

    async def serve() -> str:
        places = [(await stack.enter_async_context(serving(shelf)))[1] for shelf in shelves]
        named = [broker(f"broker-{number}", place) for number, place in enumerate(places)]
        directory = Directory({"orders": route(*named, queues=1)})
        return (await stack.enter_async_context(serving(directory)))[1]

    address = thread.call(serve())
    try:
        consumer = mq.PopConsumer(address, group="billing", **settings)
        with consumer.subscribe("orders", expression):
            yield Served(thread, consumer)
    finally:
        thread.call(stack.aclose())
        thread.close()


def bodies(messages: list[Any]) -> list[bytes]:
    return [message.body for message in messages]


def pops(shelf: Shelf) -> list[Command]:
    return shelf.asked_for(Code.POP_MESSAGE)


def learn(served: Served) -> None:
    """Receive once, so that a connection is there."""
    assert served.consumer.receive(timeout=0.0) == []
