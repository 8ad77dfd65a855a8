"""A group of real processes under load: members join, leave and are killed, a broker dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Self

import pytest

from pocketmq import Cluster, Message, MQError, Producer

TOPIC = "orders"
GROUP = "billing"
QUEUES = 8
PATIENCE = 90.0


class Member:
    """A member's process, and what it said."""

    def __init__(self, address: str, *how: str) -> None:
        command = [sys.executable, "-m", "tests.cluster.member_process"]
        self.process = subprocess.Popen(
            [*command, address, GROUP, TOPIC, *how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        self.holds: set[str] = set()
        self.got: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, *rest = line.split()
            if word == "holds":
                self.holds = set(rest)
            elif line.endswith("\n"):
                self.got += rest

    def leave(self) -> None:
        """Let it stop in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self._end()

    def kill(self) -> None:
        """End it without warning."""
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        self._end()

    def _end(self) -> None:
        self._reader.join(60)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


class Load:
    """Sends until told to stop; keeps the keys of what was acknowledged."""

    def __init__(self, address: str) -> None:
        self.sent: list[str] = []
        self._producer = Producer(address, group="shop")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._producer.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._producer.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        for number in count():
            if self._stop.wait(0.025):
                return
            key = f"k{number}"
            with suppress(MQError):
                self._producer.send(
                    Message(TOPIC, b"x", keys=[key]), ordering_key=f"lane-{number % 40}"
                )
                self.sent.append(key)


def wait_for(condition: Callable[[], object], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what()}"
        time.sleep(0.05)


def shared_out(members: list[Member], queues: set[str]) -> None:
    """Wait until every queue has exactly one owner, and shares are fair."""

    def settled() -> bool:
        shares = [member.holds for member in members]
        sizes = [len(share) for share in shares]
        return (
            set().union(*shares) == queues
            and sum(sizes) == len(queues)
            and max(sizes) - min(sizes) <= 1
        )

    wait_for(settled, lambda: [sorted(member.holds) for member in members])


@contextmanager
def group(address: str, *how: str) -> Iterator[Callable[[], Member]]:
    members: list[Member] = []

    def join() -> Member:
        members.append(Member(address, *how))
        return members[-1]

    try:
        yield join
    finally:
        for member in members:
            member.kill()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("how", [(), ("orderly",)], ids=["concurrent", "orderly"])
def test_members_and_a_broker_come_and_go_under_load(tmp_path: Path, how: tuple[str, ...]) -> None:
    with (
        Cluster(brokers=2, data=tmp_path, in_process=False) as cluster,
        group(cluster.address, *how) as join,
    ):
        cluster.create_topic(TOPIC, QUEUES)
        queues = {f"{broker}:{n}" for broker in cluster.brokers for n in range(QUEUES)}
        with Load(cluster.address) as load:
            a, b = join(), join()
            shared_out([a, b], queues)
            c = join()
            shared_out([a, b, c], queues)
            b.leave()
            shared_out([a, c], queues)
            d = join()
            shared_out([a, c, d], queues)
            a.kill()
            shared_out([c, d], queues)
            cluster.kill("broker-1")
            before = len(load.sent)
            wait_for(lambda: len(load.sent) > before + 20, lambda: "sends to the other broker")
            cluster.restart("broker-1")
            e = join()
            shared_out([c, d, e], queues)
            wait_for(lambda: len(load.sent) > 200, lambda: f"{len(load.sent)} messages sent")
            load.stop()
            everyone = (a, b, c, d, e)

            def missing() -> set[str]:
                return set(load.sent).difference(*(member.got for member in everyone))

            wait_for(lambda: not missing(), lambda: sorted(missing())[:10])
            for member in (c, d, e):
                member.leave()
