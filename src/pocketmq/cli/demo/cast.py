"""The demo's cast: members in processes of their own, producers, an observer of offsets.

Owns what each does and what is known of it; when it does so is the play's business.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from pocketmq import Message, MQError, Producer
from pocketmq.cli.demo.member import quick_options
from pocketmq.pipelines.health import DeliveryRecord, OffsetSample
from pocketmq.pipelines.health.observed import OffsetSampler

TOPIC, GROUP, EVENTS = "orders", "billing", "rebalances"
_PATIENCE = 20.0


class Member:
    """A member's process, and what it said so far."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.client_id = f"{name}@demo"
        self.state = "joining"
        self.holds: frozenset[str] = frozenset()
        self.got: list[DeliveryRecord] = []
        self.numbers: list[int] = []
        module = "pocketmq.cli.demo.member"
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", module, address, name, GROUP, TOPIC, EVENTS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the play, which ends its members in order
        )
        self._reader = threading.Thread(target=self._read, name=f"demo-{name}", daemon=True)
        self._reader.start()

    @property
    def there(self) -> bool:
        """Whether it runs and has not been told to go."""
        return self.state in ("joining", "member")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):  # a line cut off by a kill
            for line in self._process.stdout:
                self._take(json.loads(line))

    def _take(self, line: list[Any]) -> None:
        if line[0] == "holds":
            self.holds = frozenset(line[1])
            if self.state == "joining":
                self.state = "member"
            return
        _, when, broker, queue, given = line
        for offset, number in given:
            self.numbers.append(number)
            self.got.append(
                DeliveryRecord(
                    time=when, group=GROUP, client_id=self.client_id, topic=TOPIC, broker=broker,
                    queue=queue, offset=offset,
                )
            )  # fmt: skip

    def leave(self) -> None:
        """Let it leave the group in order."""
        self.state = "left"
        self._end(lambda: None)
        self.holds = frozenset()

    def kill(self) -> None:
        """End it without warning."""
        self.state = "killed"
        self._end(lambda: os.kill(self._process.pid, signal.SIGKILL))
        self.holds = frozenset()

    def _end(self, how: Any) -> None:
        with suppress(ProcessLookupError):
            how()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Producers:
    """Sends orders at a rate, from two threads; knows which were acknowledged. Used with `with`."""

    def __init__(self, address: str, rate: int) -> None:
        self.acknowledged: list[int] = []
        self.unsure = 0
        self._producer = Producer(address, group="shop", options=quick_options("shop"))
        self._gap = 2 / rate
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(lane,), daemon=True) for lane in (0, 1)
        ]

    def __enter__(self) -> Self:
        self._producer.start()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._producer.close()

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _run(self, lane: int) -> None:
        chance = random.Random(lane)  # noqa: S311 - amounts of pretended orders
        number, due = lane, time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._gap, time.monotonic() - 1.0)
            order = {
                "number": number,
                "customer": f"customer-{chance.randrange(500)}",
                "amount": round(chance.uniform(1, 200), 2),
                "sent": time.time(),
            }
            body = json.dumps(order).encode()
            try:
                self._producer.send(Message(TOPIC, body, tag="order", keys=[str(number)]))
                self.acknowledged.append(number)
            except MQError:
                self.unsure += 1  # it may or may not be stored: nothing is claimed of it
            number += 2


class Observer:
    """Samples the group's offsets, and keeps them. Used with `with`."""

    def __init__(self, address: str) -> None:
        self.samples: list[OffsetSample] = []
        self.lag = 0
        self.rounds = 0
        """How often it has looked."""
        self._sampler = OffsetSampler(address, [(GROUP, TOPIC)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-observer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        with self._sampler as sampler:
            while not self._stop.wait(0.5):
                found = sampler.sample()
                self.samples += found
                self.lag = sum(sample.lag for sample in found)
                self.rounds += 1


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write values as JSON lines."""
    encode = msgspec.json.Encoder().encode
    file: IO[bytes]
    with path.open("wb") as file:
        file.writelines(encode(value) + b"\n" for value in values)
