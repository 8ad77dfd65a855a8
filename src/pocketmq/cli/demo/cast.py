"""The demo's cast: consumers in processes of their own, producers, an observer of offsets.

Owns what each does and reports; when it does so is decided by the play.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from pocketmq import Message, MQError, Producer
from pocketmq.cli.demo.member import quick_options
from pocketmq.cli.demo.repeats import DemoDelivery
from pocketmq.client.identity import client_id
from pocketmq.pipelines.health import OffsetSample
from pocketmq.pipelines.health.observed import OffsetSampler

TOPIC, EVENTS = "orders", "rebalances"
_OWNED = frozenset({"running", "behind barrier", "filling hole", "fenced"})
"""The stages of queues that are a member's own; others are on their way to it, or from it."""
_PATIENCE = 20.0


def owned(stages: Mapping[str, str]) -> frozenset[str]:
    """Return the queues that are a member's own, by the stages it reported."""
    return frozenset(queue for queue, stage in stages.items() if stage in _OWNED)


class ConsumerProcess:
    """A consumer's process, and what it has reported so far."""

    def __init__(self, name: str, address: str, group: str, strategy: str) -> None:
        self.name = name
        self.client_id = client_id(name, "demo", hands_over=strategy == "STICKY")
        self.state = "joining"
        self.stages: dict[str, str] = {}
        """Its queues, and those on their way to it or from it."""
        self.got: list[DemoDelivery] = []
        self.numbers: set[int] = set()
        self.ended_at = 0.0
        self._group = group
        module = "pocketmq.cli.demo.member"
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", module, address, name, group, strategy, TOPIC, EVENTS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the play, which stops its members gracefully
        )
        self._reader = threading.Thread(target=self._read, name=f"demo-{name}", daemon=True)
        self._reader.start()

    @property
    def holds(self) -> frozenset[str]:
        """The queues that it owns."""
        return owned(self.stages)

    @property
    def there(self) -> bool:
        """Whether it is running and was not asked to leave."""
        return self.state in ("joining", "member")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):  # a line cut off by a kill
            for line in self._process.stdout:
                self._take(json.loads(line))

    def _take(self, line: list[Any]) -> None:
        if line[0] == "holds":
            self.stages = line[1]
            if self.state == "joining":
                self.state = "member"
            return
        _, when, broker, queue, given = line
        for offset, number, stored in given:
            self.numbers.add(number)
            self.got.append(
                DemoDelivery(
                    time=when, group=self._group, client_id=self.client_id, topic=TOPIC,
                    broker=broker, queue=queue, offset=offset, number=number, stored=stored,
                )
            )  # fmt: skip

    def leave(self) -> None:
        """Make it leave the group gracefully."""
        self._end("left", lambda: None)

    def kill(self) -> None:
        """Kill it without warning."""
        self._end("killed", lambda: os.kill(self._process.pid, signal.SIGKILL))

    def _end(self, state: str, how: Callable[[], None]) -> None:
        self.ended_at = time.time()
        self.state = state
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
        self.stages = {}


class Producers:
    """Sends orders at a rate, from two threads; keeps the acknowledged ones. Used with `with`."""

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
        """Stop sending."""
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
                self.unsure += 1  # it may or may not be stored, so it is not counted
            number += 2


class Observer:
    """Samples the groups' offsets and keeps them. Used with `with`."""

    def __init__(self, address: str, groups: Sequence[str]) -> None:
        self.samples: list[OffsetSample] = []
        self.lag = dict.fromkeys(groups, 0)
        self.rounds = 0
        """The number of samples so far."""
        self._sampler = OffsetSampler(address, [(group, TOPIC) for group in groups])
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
                lag = dict.fromkeys(self.lag, 0)
                for sample in found:
                    lag[sample.group] += sample.lag
                self.lag = lag
                self.rounds += 1


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write values to a file, as JSON lines."""
    encode = msgspec.json.Encoder().encode
    file: IO[bytes]
    with path.open("wb") as file:
        file.writelines(encode(value) + b"\n" for value in values)
