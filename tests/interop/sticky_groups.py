"""Groups of real processes on a Java broker that change while messages come, and what they noted."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._handovers import Delivery, Record
from benchmarks._rebalance_group import Group, Load, Way

from pocketmq.balance.allocation import allocate
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import handover_version
from tests.interop.java_broker import JavaBroker
from tests.interop.jvm import Jars

BROKER = "broker-a"
QUEUES = 8
HANDLER_MS = 20.0
CALM = 0.5
HEARTBEAT = 4.0
"""Seconds: the brokers of these tests drop soon who is silent."""
AVG, STICKY = (
    Way(name, {"strategy": name, "heartbeat_interval": HEARTBEAT}) for name in ("AVG", "STICKY")
)
_numbers = count()


class DefaultLocks(Jars):
    """A release whose brokers keep queue locks as long as they do by default, a minute.

    Elsewhere they are told to forget them soon. Hand-overs must not need that.
    """

    def command(self, home: Path, program: str, *arguments: str) -> list[str]:
        words = super().command(home, program, *arguments)
        return [word for word in words if "broker.rebalance.lockMaxLiveTime" not in word]


@contextmanager
def group_of(java: JavaBroker, way: Way, rate: float) -> Iterator[Group]:
    """A group and the producer of a new topic, which sends to each queue at a rate."""
    topic = f"sticky-{next(_numbers)}"
    java.create_topic(topic, QUEUES)
    queues = [f"{BROKER}:{number}" for number in range(QUEUES)]
    load = Load(rate, HANDLER_MS)
    with (
        TemporaryDirectory() as home,
        Group(java.address, topic, queues, way, load, Path(home)) as group,
    ):
        group.calm = CALM
        yield group


def astray(group: Group) -> dict[str, tuple[set[str], set[str]]]:
    """Return the foreign members that own something else than AVG gives them: that, and this.

    With them ours as a whole, if they own something else than the rest, or not evenly.
    """
    queues = {MessageQueue("", BROKER, number) for number in range(QUEUES)}
    members = list(group.present.values())
    for member in members:
        member.read()
    ids = [member.client_id for member in members]
    wrong, rest = {}, {f"{BROKER}:{number}" for number in range(QUEUES)}
    for member in members:
        if handover_version(member.client_id) is None:
            found = allocate(strategy_by_name("AVG"), "", member.client_id, queues, ids)
            share = {f"{queue.broker_name}:{queue.queue_id}" for queue in found}
            rest -= share
            if member.owned != share:
                wrong[member.client_id] = member.owned, share
    ours = [member.owned for member in members if handover_version(member.client_id) is not None]
    sizes = list(map(len, ours))
    if ours and (set().union(*ours) != rest or max(sizes) - min(sizes) > 1):
        wrong["ours"] = set().union(*ours), rest
    return wrong


def first_deliveries(record: Record) -> dict[tuple[str, int], Delivery]:
    """Return the first delivery of each message."""
    first: dict[tuple[str, int], Delivery] = {}
    for each in sorted(record.deliveries):
        first.setdefault((each.queue, each.offset), each)
    return first
