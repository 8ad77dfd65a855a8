"""A broker on this process's own event loop."""

import os
from pathlib import Path

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.embedded.broker_runner import BrokerOrder, raising_cannot_start


class InProcessBroker:
    """A broker beside its clients: starts fast, debugs easily, shares their process's fate."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._broker: Broker | None = None

    @property
    def pid(self) -> int:
        """This process's own."""
        return os.getpid()

    async def start(self, order: BrokerOrder) -> str:
        """Start it on the running loop."""
        config = BrokerConfig.from_properties(order.properties)
        data = None if order.data is None else Path(order.data)
        broker = Broker(config, data, order.nameservers, given=order.given)
        try:
            with raising_cannot_start(self.name):
                await broker.start()
        except BaseException:
            await broker.stop(0)
            raise
        self._broker = broker
        return str(broker.bound)

    async def stop(self) -> None:
        """Let it finish."""
        if self._broker is not None:
            await self._broker.stop()

    async def kill(self) -> None:
        """End it as near to a crash as one process allows."""
        if self._broker is not None:
            await self._broker.abort()
