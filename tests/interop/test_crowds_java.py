"""Java and Python members of one group, in every way to share, on every kind of cluster.

Six strategies, concurrent and orderly, and broadcasting: thirteen groups live through the same
joins, departures, deaths and the loss of a broker; where brokers are Java's, five of them, which
consume in every way. After each of them every member owns exactly
the share that Java's rule gives it, so no queue is owned twice, and none by nobody unless the rule
is CONFIG, which leaves those out that nobody is configured with.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.model import MessageQueue
from tests.interop.crowd import FEWER, GROUPS, Crowd
from tests.interop.groups import Load
from tests.interop.jvm import Jars, wait_until
from tests.interop.rows import ROWS, Row

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

# A Java broker may take in the last heartbeat of a client after it has seen its connection close:
# the dead one is a member again until it has been silent for so long, by default two minutes.
SILENT_MS = 15_000
TOPIC, EAST, WEST = "shared", "east@a", "west@b"
QUEUES = {MessageQueue(TOPIC, broker, number) for broker in (EAST, WEST) for number in range(4)}
KEYS = 12


class Scene:
    """A cluster of two brokers, a crowd, and a Java producer that sends all the while."""

    def __init__(self, jars: Jars, home: Path, stack: ExitStack, kind: tuple[str, str]) -> None:
        settings = {"channelExpiredTimeout": SILENT_MS}
        self.cluster = Row(jars, home, stack, kind, EAST, WEST, **settings)
        self.cluster.create_topic(TOPIC, 4)
        groups = FEWER if kind[1] == "java" else GROUPS
        self.crowd = Crowd(jars, home, stack, self.cluster.address, TOPIC, groups)
        self._jars = jars
        self._home = home
        self._stack = stack

    def load(self) -> Load:
        words = [self.cluster.address, TOPIC, "100", str(KEYS)]
        command = self._jars.compiled(self._home, "Load", *words)
        return self._stack.enter_context(Load(command, self._home))


# Each kind of name server and each kind of broker with members of either release: with 5.x on
# clusters of two makes, with 4.x on those of one. Each release's members know all strategies once.
OF_TWO_MAKES = ("java-ours", "ours-java")
CLUSTERS = [
    pytest.param(kind, id=name, marks=pytest.mark.line("5.x" if name in OF_TWO_MAKES else "4.x"))
    for name, kind in ROWS.items()
]


@pytest.fixture(params=CLUSTERS)
def scene(request: pytest.FixtureRequest, jars: Jars, tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(jars, tmp_path, stack, request.param)


def test_shares_are_javas_after_each_change(scene: Scene) -> None:
    crowd = scene.crowd
    first, second = (
        crowd.java("east-j1", f"{EAST}/0", f"{WEST}/3"),
        crowd.python("west-p1-4.x", f"{WEST}/0"),
    )
    crowd.share(QUEUES, "a Java and a Python member to share")
    load = scene.load()
    crowd.java("west-j2", f"{EAST}/1")
    crowd.share(QUEUES, "a Java member to join")
    third = crowd.python("east-p2", f"{EAST}/2", f"{EAST}/3")
    crowd.share(QUEUES, "a Python member to join")
    _keys_are_routed_alike(scene, load)
    crowd.leave(first)
    crowd.share(QUEUES, "what the Java member left")
    crowd.kill(third)
    crowd.share(QUEUES, "what the Python member left behind")
    _orderly_ones_saw_each_queue_in_order(crowd)
    scene.cluster.kill(WEST)
    crowd.share({queue for queue in QUEUES if queue.broker_name == EAST}, "a broker to be gone")
    scene.cluster.restart(WEST)
    crowd.share(QUEUES, "the broker to be back")
    last = crowd.python("east-p3", f"{EAST}/0")
    crowd.share(QUEUES, "one more Python member to join")
    crowd.leave(second)
    crowd.share(QUEUES, "what the Python member left")
    crowd.kill(crowd.present[0])
    crowd.share(QUEUES, "what the Java member left behind")
    accepted = load.stop()
    for group in (each for each in crowd.groups if not each.startswith("CONFIG")):
        wait_until(
            lambda: accepted <= crowd.consumed(group),  # noqa: B023 - called at once
            f"every message in {group}",
        )
    wait_until(
        lambda: accepted <= {body for _, body in last.got("AVG-broadcasting")},
        "the last one to hear all that was broadcast",
    )
    _orderly_ones_saw_each_queue_in_order(crowd, rewound=True)


def _keys_are_routed_alike(scene: Scene, load: Load) -> None:
    """Each key has one queue, whichever producer sends, and all queues are used."""
    wait_until(lambda: len(load.accepted) > 5 * KEYS, "messages of the Java producer")
    chosen: dict[str, set[str]] = {}
    with mq.Producer(scene.cluster.address, group="ours") as producer:
        for key in range(KEYS):
            body = f"{key}:ours"
            receipt = producer.send(mq.Message(TOPIC, body.encode()), ordering_key=f"key {key}")
            chosen[str(key)] = {f"{receipt.queue.broker_name}/{receipt.queue.queue_id}"}

    def heard() -> list[tuple[str, str]]:
        everything = [each for person in scene.crowd.everybody for each in person.got(GROUPS[0])]
        return [(place, body) for place, body in everything if not body.endswith(":ours")]

    wait_until(
        lambda: {body.partition(":")[0] for _, body in heard()} == chosen.keys(),
        "a message of the Java producer for each key",
    )
    for place, body in heard():
        chosen[body.partition(":")[0]].add(place.rpartition("@")[0])
    assert {key: len(places) for key, places in chosen.items()} == dict.fromkeys(chosen, 1)
    assert len(set().union(*chosen.values())) == len(QUEUES)


def _orderly_ones_saw_each_queue_in_order(crowd: Crowd, *, rewound: bool = False) -> None:
    """No member was given an older message after a newer one of the same queue, nor one twice.

    But for this: as with Java's members, what a handler ends after its queue was taken away is not
    committed, so that very message is given again if the queue comes back. A broker that was killed
    has forgotten more of what was committed: then a queue that comes back may be `rewound`.
    """
    for group in (each for each in crowd.groups if each.endswith("orderly")):
        for person in crowd.everybody:
            last: dict[str, tuple[int, int]] = {}
            for queue, offset, losses in person.held(group):
                before, then = last.get(queue, (-1, 0))
                again = losses > then and (offset == before or rewound)
                in_order = offset > before or again
                assert in_order, (group, person.client_id, queue, offset)
                last[queue] = offset, losses
