"""The goals of the comparison, by the name of the row."""

from typing import NamedTuple


class Goal(NamedTuple):
    """A bound that a figure is to keep."""

    text: str
    bound: float
    less: bool = False

    def reached(self, figure: float) -> bool:
        return figure <= self.bound if self.less else figure >= self.bound


class Goals(NamedTuple):
    """What a row is to reach."""

    ratio: Goal | None = None
    """Of ours/ours over Java/Java."""
    client: Goal | None = None
    """Of ours/Java over Java/Java: our client at Java's servers."""
    value: Goal | None = None
    """Of ours/ours itself."""
    kafka: Goal | None = None
    """Of ours/ours over Kafka."""


def least(bound: float, of: str = "×") -> Goal:
    return Goal(f"≥ {bound:g} {of}", bound)


def most(bound: float, text: str = "") -> Goal:
    return Goal(f"≤ {text or f'{bound:g} ×'}", bound, less=True)


NO_GOALS = Goals()
SPECIAL = Goals(least(1.5))
SUBMIT = "submit with batching by itself, 1 thread"
GOALS = {
    "send, one at a time": Goals(least(3.5), least(1.2)),
    "send, 64 in flight": Goals(least(4), least(1.5)),
    "send, batches of 32": Goals(least(2), least(1)),
    "send, batches of 256": Goals(least(1.5), least(1)),
    SUBMIT: Goals(value=Goal("≥ 300 000/s", 300_000), kafka=least(1, "× Kafka")),
    "consume a backlog, defaults": Goals(least(3), least(1.2)),
    "consume a backlog, batches of 1024": Goals(least(2), least(1.2)),
    "synchronous flush, one at a time": Goals(least(2)),
    "synchronous flush, 64 in flight": Goals(least(2)),
    "live latency, p50": Goals(most(0.4)),
    "live latency, p99": Goals(most(0.5)),
    "POP receive + ack, one at a time": Goals(least(2)),
    "POP receive + ack, batches of 32": Goals(least(2)),
    "transactions, one at a time": SPECIAL,
    "delayed sends, one at a time": SPECIAL,
    "delayed sends, 64 in flight": SPECIAL,
    "ACL-signed sends, one at a time": SPECIAL,
    "ACL-signed sends, 64 in flight": SPECIAL,
    "TLS sends, one at a time": SPECIAL,
    "TLS sends, 64 in flight": SPECIAL,
    "servers' memory, their own": Goals(most(1 / 8, "1/8")),
    "start to first message stored": Goals(most(1 / 20, "1/20")),
    "idle servers' memory, their own": Goals(value=most(70, "70 MB")),
    "idle servers' processor": Goals(value=most(0.5, "0.5 %")),
}
