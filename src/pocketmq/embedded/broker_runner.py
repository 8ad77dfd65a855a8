"""Running one broker once: the order it gets, the report it makes, and the in-process runner.

A cluster sends its broker processes one order and gets one report back, as one JSON value a line.
`child_process` is the other runner. Imported by broker processes and by the parent, so it imports
the broker itself only where one runs.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from pocketmq.embedded.server_logging import LogSettings
from pocketmq.errors import CannotStart, InvalidInput, ListenFailed, MQError, StoreError

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker

Ended = Callable[[str], None]
"""Called with how it ended (`was killed by SIGKILL`) if that was not requested."""


class Runner(Protocol):
    """What runs a broker: this process or one of its own."""

    @property
    def pid(self) -> int:
        """The process it runs in."""

    async def start(self, order: "BrokerOrder") -> str:
        """Start it and return the address it listens on. Raises `CannotStart`, `PartEnded`."""

    async def stop(self) -> None:
        """Stop it gracefully: everything written, unregistered from name servers."""

    async def kill(self) -> None:
        """Kill it, as a crash would."""


class BrokerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Run this broker. `data` None keeps everything in memory."""

    properties: dict[str, str]  # RocketMQ's keys, see `pocketmq.broker.config`
    given: list[str] = []  # keys that win over what was changed while the broker ran
    any_port: bool = False  # if the one in `properties` is in use
    data: str | None
    nameservers: list[str]
    log: LogSettings


class BrokerReady(msgspec.Struct, frozen=True, tag="ready", tag_field="report"):
    """The broker serves at this address and has registered with the name servers."""

    address: str


class BrokerRefused(msgspec.Struct, frozen=True, tag="refused", tag_field="report"):
    """The broker cannot run as ordered; the process ends."""

    reason: str


Report = BrokerReady | BrokerRefused


def write_line(value: BrokerOrder | Report) -> bytes:
    """Encode a value with the end of its line."""
    return msgspec.json.encode(value) + b"\n"


def read_order(line: bytes) -> BrokerOrder:
    """Decode the parent's order."""
    return msgspec.json.decode(line, type=BrokerOrder)


def read_report(line: bytes) -> Report:
    """Decode a child's report."""
    report: Report = msgspec.json.decode(line, type=Report)
    return report


@contextmanager
def raising_cannot_start(part: str) -> Iterator[None]:
    """Turn the errors of a wrong address, directory or setting into `CannotStart`."""
    try:
        yield
    except ListenFailed as problem:
        reason = f"it cannot listen on {problem.address}: {problem.reason}"
        raise CannotStart(part, reason) from problem
    except (InvalidInput, StoreError) as problem:
        raise CannotStart(part, str(problem)) from problem
    except MQError:  # some are an OSError, too
        raise
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        raise CannotStart(part, f"{where}{problem.strerror or problem}") from problem


class InProcessBroker:
    """A broker on this process's event loop: starts fast, debugs easily, ends with the process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._broker: Broker | None = None

    @property
    def pid(self) -> int:
        """The number of this process."""
        return os.getpid()

    async def start(self, order: BrokerOrder) -> str:
        """Start it on the running loop."""
        from pocketmq.broker.broker import Broker  # brings the broker's parts: not for the parent
        from pocketmq.broker.config import BrokerConfig

        config = BrokerConfig.from_properties(order.properties)
        data = None if order.data is None else Path(order.data)
        broker = Broker(config, data, order.nameservers, given=order.given, any_port=order.any_port)
        try:
            with raising_cannot_start(self.name):
                await broker.start()
        except BaseException:
            await broker.stop(0)
            raise
        self._broker = broker
        return str(broker.bound)

    async def stop(self) -> None:
        """Stop it gracefully."""
        if self._broker is not None:
            await self._broker.stop()

    async def kill(self) -> None:
        """End it as close to a crash as one process allows."""
        if self._broker is not None:
            await self._broker.abort()
