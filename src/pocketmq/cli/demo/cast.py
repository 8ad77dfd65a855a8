"""The demo's cast: consumers in processes of their own and their groups, producers, an observer.

Owns what each does and reports, and whether a group has settled; when it does so is decided by
the play. The observer samples offsets.
"""

import json
import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from pocketmq import Message, MQError, Producer
from pocketmq.cli.demo.member import HOST, TOPIC, quick_options, run_member
from pocketmq.cli.demo.repeats import CommittedOffsets, DemoDelivery
from pocketmq.client.options import client_id
from pocketmq.pipelines.health import OffsetSample
from pocketmq.pipelines.health.observed import OffsetSampler

_PROCESSES = multiprocessing.get_context("forkserver")
"""Members are forked from a process that has imported all they need: what is shown is how long a
group takes, not Python."""
_OWNED = frozenset({"running", "behind barrier", "filling hole", "fenced"})
"""The stages of queues that are a member's own; others are on their way to it, or from it."""
_PATIENCE = 20.0


def prepare_members() -> None:
    """Start the process that members are forked from."""
    _PROCESSES.set_forkserver_preload(["__main__", run_member.__module__])
    forkserver.ensure_running()


def owned(stages: Mapping[str, str]) -> frozenset[str]:
    """Return the queues that are a member's own, by the stages it reported."""
    return frozenset(queue for queue, stage in stages.items() if stage in _OWNED)


class ConsumerProcess:
    """A consumer's process, and what it has reported so far."""

    def __init__(self, name: str, address: str, group: str, strategy: str) -> None:
        self.name = name
        self.client_id = client_id(HOST, name, hands_over=strategy == "STICKY")
        self.state = "joining"
        self.stages: dict[str, str] = {}
        """Its queues, and those on their way to it or from it."""
        self.got: list[DemoDelivery] = []
        self.numbers: set[int] = set()
        self.ended_at = 0.0
        self._group = group
        self._line, theirs = _PROCESSES.Pipe()
        self._process = _PROCESSES.Process(
            target=run_member, args=(theirs, address, name, group, strategy), daemon=True
        )
        self._process.start()
        theirs.close()  # so that it is closed when the member is gone
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
        with suppress(EOFError, OSError):  # it is gone
            while True:
                self._take(msgspec.json.decode(self._line.recv_bytes()))

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
        self._end("left", lambda: self._line.send_bytes(b"leave"))

    def kill(self) -> None:
        """Kill it without warning."""
        self._end("killed", self._process.kill)

    def _end(self, state: str, how: Callable[[], None]) -> None:
        self.ended_at = time.time()
        self.state = state
        with suppress(OSError):  # it is gone already
            how()
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._reader.join(_PATIENCE)
        self._line.close()
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
        self._sampling = threading.Lock()
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

    def committed(self) -> dict[str, CommittedOffsets]:
        """Return what each group has committed by now."""
        with self._sampling:
            found = self._sampler.sample()
        committed: dict[str, CommittedOffsets] = {group: {} for group in self.lag}
        for one in found:
            committed[one.group][one.broker, one.queue] = one.committed or 0
        return committed

    def _run(self) -> None:
        with self._sampler as sampler:
            while not self._stop.wait(0.5):
                with self._sampling:
                    found = sampler.sample()
                self.samples += found
                lag = dict.fromkeys(self.lag, 0)
                for sample in found:
                    lag[sample.group] += sample.lag
                self.lag = lag
                self.rounds += 1


class DemoGroup:
    """The group that uses one strategy."""

    def __init__(self, strategy: str, address: str) -> None:
        self.strategy = strategy
        self.name = f"billing-{strategy.lower()}"
        self.members: list[ConsumerProcess] = []
        self._address = address

    def join(self) -> None:
        """Add a member."""
        name = f"c{len(self.members) + 1}"
        self.members.append(ConsumerProcess(name, self._address, self.name, self.strategy))

    @property
    def there(self) -> list[ConsumerProcess]:
        """The members that run and were not asked to leave."""
        return [member for member in self.members if member.there]

    @property
    def consumed(self) -> int:
        """The number of deliveries so far."""
        return sum(len(member.got) for member in self.members)

    def deliveries(self) -> list[DemoDelivery]:
        """Return what all members got."""
        return [delivery for member in self.members for delivery in member.got]

    def missing(self, acknowledged: Iterable[int]) -> set[int]:
        """Return the acknowledged messages that are not consumed yet."""
        return set(acknowledged).difference(*(member.numbers for member in self.members))

    def owners(self) -> dict[str, str]:
        """Return the owner of each queue."""
        return {queue: member.name for member in self.members for queue in member.holds}

    def settled(self, queues: Collection[str]) -> bool:
        """Return whether the available queues each have one owner, and the shares are even."""
        return settled([member.stages for member in self.there], queues)

    def shares(self) -> str:
        """Return how many queues each member has, as text."""
        return ", ".join(f"{member.name} {len(member.holds)}" for member in self.there)


def settled(members: Sequence[Mapping[str, str]], queues: Collection[str]) -> bool:
    """Return whether each queue has one owner, and the members' shares are even.

    `members` are the stages of each member's queues. A queue that is not available (its broker is
    down) has no owner any more, or one that keeps it fenced; such queues count as shares.
    """
    shares = [owned(stages) for stages in members]
    owners = Counter(queue for share in shares for queue in share)
    sizes = [len(share) for share in shares]
    return (
        owners.keys() >= set(queues)
        and set(owners.values()) == {1}
        and max(sizes) - min(sizes) <= 1
        and all(
            stage == ("running" if queue in queues else "fenced")
            for stages in members
            for queue, stage in stages.items()
        )
    )


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write values to a file, as JSON lines."""
    encode = msgspec.json.Encoder().encode
    file: IO[bytes]
    with path.open("wb") as file:
        file.writelines(encode(value) + b"\n" for value in values)
