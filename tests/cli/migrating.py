"""What tests of `pocketmq migrate` share: the operator, and a shop that moves while it is open."""

import json
import signal
import subprocess
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pocketmq as mq
from pocketmq.protocol import ReceivedMessage
from tests.cli.in_process import command
from tests.server_process import POCKETMQ, wait_for

FIRST = mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class Operator:
    """Runs the command for two clusters and one state file."""

    def __init__(self, source: str, target: str, state: Path) -> None:
        self.source = source
        self.target = target
        self.state = state

    def command(self, step: str, *more: str) -> list[str]:
        where = ["-n", self.source, "--to", self.target, "--state", str(self.state)]
        return [str(POCKETMQ), "migrate", step, *where, *more]

    def run(self, step: str, *more: str, code: int = 0) -> str:
        """Run a step in this process; those that `start` starts have one of their own."""
        done = command(*self.command(step, *more)[1:])
        out, error = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == code, (out, error)
        return out if code == 0 else out + error

    def json(self, step: str, *more: str, code: int = 0) -> Any:
        return json.loads(self.run(step, "--json", *more, code=code))

    def start(self, step: str, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(step, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def copied(self, more_than: int = 0) -> bool:
        """Return whether more messages than so many were copied."""
        return sum(int(row["copied"]) for row in self.json("status")) > more_than

    def copied_all(self) -> bool:
        """Return whether the source has nothing more to copy."""
        return all(row["behind"] == 0 for row in self.json("status"))


class Sending(threading.Thread):
    """Sends numbered messages, keyed by customer, until told where else to go on, or to end."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self.sent = 0
        self._next = [address]
        self._moved = threading.Event()

    def move_to(self, address: str | None) -> None:
        self._next.append(address or "")
        self._moved.set()

    def run(self) -> None:
        for _ in range(2):
            address = self._next[-1]
            if not address:
                return
            self._moved.clear()
            with mq.Producer(address, group="shop", send_timeout=30.0) as producer:
                while not self._moved.is_set():
                    message = mq.Message(self.topic, b"%d" % self.sent)
                    producer.send(message, ordering_key=str(self.sent % 7))
                    self.sent += 1
                    self._moved.wait(0.002)
            if not self._next[-1]:
                return


class Consuming:
    """A consumer of the group on one cluster, and what it got."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        self.got: list[bytes] = []
        self._consumer = mq.PushConsumer(address, group=group, consume_from=FIRST, threads=1)
        self._consumer.subscribe(topic, "*", self._take)
        self._consumer.start()

    def _take(self, message: ReceivedMessage) -> None:
        self.got.append(message.body)

    def close(self) -> None:
        self._consumer.close()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def move_while_open(operator: Operator, topic: str, group: str, patience: float = 60.0) -> None:
    """Move a topic of the source, its group and its producer, and check that nothing is lost.

    Copied while messages come, killed twice, then the group moves, then the producer. Every message
    is consumed on one side or the other; what comes twice is what was announced.
    """
    sending = Sending(operator.source, topic)
    sending.start()
    try:
        before = Consuming(operator.source, topic, group)
        for goal in (200, 400):
            following = operator.start("copy", "--follow")
            wait_for(operator.state.exists, "the state file", patience)
            wait_for(partial(operator.copied, goal), "copies", patience)
            kill(following)
        following = operator.start("copy", "--follow")
        wait_for(lambda: len(before.got) > 100, "the group at work", patience)
        before.close()
        (moved,) = operator.json("offsets", "-g", group)
        assert (moved["source_members"], moved["target_members"]) == (0, 0)
        after = Consuming(operator.target, topic, group)
        wait_for(lambda: len(after.got) > 100, "the group at work on the target", patience)
        sending.move_to(operator.target)
        at = sending.sent
        wait_for(lambda: sending.sent > at + 200, "producers at work on the target", patience)
    finally:
        sending.move_to(None)
        sending.join()
    wait_for(operator.copied_all, "all to be copied", patience)
    following.send_signal(signal.SIGINT)
    out, _ = following.communicate(timeout=patience)
    assert following.returncode == 0
    assert out.startswith("copied ")
    everything = Counter(b"%d" % number for number in range(sending.sent))
    wait_for(
        lambda: everything <= Counter(before.got) + Counter(after.got), "every message", patience
    )
    after.close()
    got = Counter(before.got) + Counter(after.got)
    assert set(got) == set(everything)
    again = sum(each["again"] + each["not_copied"] for each in moved["queues"])
    verdicts = operator.json("verify")
    assert sum(each["missing"] + each["different"] for each in verdicts) == 0
    assert sum(each["source_digest"] != each["target_digest"] for each in verdicts) == 0
    duplicates = sum(each["duplicates"] for each in verdicts)
    assert got.total() - sending.sent == again + duplicates
    assert sum(each["copies"] + each["others"] for each in verdicts) == sending.sent
