"""One life of one broker: it is started once and ends once, by itself or on demand."""

from collections.abc import Callable
from typing import Protocol

from pocketmq.embedded.broker_runner import BrokerOrder

Ended = Callable[[str], None]
"""Called with how it ended (`was killed by SIGKILL`) when nobody had asked for it."""


class Runner(Protocol):
    """Where a broker runs: in this process or in one of its own."""

    @property
    def pid(self) -> int:
        """The process it runs in."""

    async def start(self, order: BrokerOrder) -> str:
        """Start it and give the address it serves at. Raises `CannotStart`, `PartEnded`."""

    async def stop(self) -> None:
        """Let it finish: everything written, name servers told."""

    async def kill(self) -> None:
        """End it at once, as a crash would."""
