"""Java's push consumers in POP mode on our brokers, set to it with Java's mqadmin."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.embedded import Cluster
from pocketmq.model import ConsumeFromWhere
from tests.interop.groups import Load, Member, consumed
from tests.interop.jvm import Admin, Jars, wait_until

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

TOPIC = "popped"
GROUP = "poppers"


class Scene:
    """A cluster of two brokers, a topic, and Java programs."""

    def __init__(self, jars: Jars, home: Path, cluster: Cluster, stack: ExitStack) -> None:
        self.jars = jars
        self.home = home
        self.cluster = cluster
        self.stack = stack
        self.admin = stack.enter_context(Admin(jars, home))

    def mode(self, group: str, mode: str, sharing: int = 0) -> None:
        options = f"-c DefaultCluster -t {TOPIC} -g {group} -m {mode} -q {sharing}"
        said = self.admin.run(f"setConsumeMode -n {self.cluster.address} {options}")
        assert said.count("success") >= 1, said

    def join(self, name: str, group: str = GROUP, expression: str = "*", count: int = 1) -> Member:
        words = [self.cluster.address, group, TOPIC, expression, name, str(count)]
        command = self.jars.compiled(self.home, "PopMember", *words)
        return self.stack.enter_context(Member(command, self.home))

    def load(self, pause_ms: int) -> Load:
        words = [self.cluster.address, TOPIC, str(pause_ms)]
        command = self.jars.compiled(self.home, "Load", *words)
        return self.stack.enter_context(Load(command, self.home))

    def lag(self, group: str = GROUP) -> int | None:
        """Return what mqadmin says a group has not consumed."""
        said = self.admin.run(f"consumerProgress -n {self.cluster.address} -g {group}")
        found = re.search(r"Consume Diff Total: (-?\d+)|Diff Total: (-?\d+)", said)
        return None if found is None else int(found[1] or found[2])


@pytest.fixture
def scene(jars: Jars, tmp_path: Path) -> Iterator[Scene]:
    with (
        Cluster(brokers=2, data=tmp_path / "data", in_process=False) as cluster,
        ExitStack() as stack,
    ):
        cluster.create_topic(TOPIC, 4)
        yield Scene(jars, tmp_path, cluster, stack)


def test_members_pop_and_a_broker_is_killed_meanwhile(scene: Scene) -> None:
    """Nothing accepted is lost, and in the end nothing is left over."""
    scene.mode(GROUP, "POP")
    members = [scene.join("a", count=3), scene.join("b", count=3)]
    wait_until(lambda: all("started" in member.lines for member in members), "the members")
    load = scene.load(2)
    wait_until(lambda: len(consumed(members)) > 500, "messages to be consumed")
    assert all("/true" in place for member in members for place, _ in member.got), "not popped"
    scene.cluster.kill("broker-1")
    scene.cluster.restart("broker-1")
    before = len(load.accepted)
    wait_until(lambda: len(load.accepted) > before + 500, "more messages")
    members[1].kill()
    accepted = load.stop()
    left = [members[0]]
    wait_until(lambda: accepted <= consumed(members), "every message to be consumed")
    wait_until(lambda: scene.lag() == 0, "no lag")
    assert len({place.split("/")[0] for place, _ in left[0].got}) == 3


def test_what_fails_comes_again_through_the_retry_topic(scene: Scene) -> None:
    scene.mode(GROUP, "POP", 2)
    member = scene.join("a", count=2)
    wait_until(lambda: "started" in member.lines, "the member")
    _send(scene, ["fail 1", "well 1", "fail 2"])
    wait_until(lambda: len(member.got) == 5, "two to come again")
    tries: dict[str, list[str]] = {}
    for place, body in member.got:
        _, count, topic, popped = place.split("/")
        assert (topic, popped) == (TOPIC, "true")
        tries.setdefault(body, []).append(count)
    assert tries == {"fail 1": ["0", "1"], "well 1": ["0"], "fail 2": ["0", "1"]}
    wait_until(lambda: scene.lag() == 0, "no lag")


def test_groups_that_pop_pull_and_change_between_both(scene: Scene) -> None:
    """Each group gets all; one that goes from one way to the other goes on where it was."""
    scene.mode(GROUP, "POP")
    popping, pulling = scene.join("a"), scene.join("b", "pullers")
    wait_until(lambda: all("started" in m.lines for m in (popping, pulling)), "the members")
    first = {f"first {n}" for n in range(50)}
    _send(scene, sorted(first))
    wait_until(lambda: first == consumed([popping]) == consumed([pulling]), "all for both")
    assert {place.split("/")[-1] for place, _ in pulling.got} == {"false"}
    wait_until(lambda: scene.lag() == 0, "no lag")
    scene.mode(GROUP, "PULL")
    second = {f"second {n}" for n in range(50)}

    def pulled() -> bool:
        return any(place.endswith("/false") for place, _ in popping.got)

    _send(scene, sorted(second))
    wait_until(lambda: first | second == consumed([popping]), "all once more")
    third = {f"third {n}" for n in range(50)}
    wait_until(lambda: _sent_until(scene, third, pulled), "the group to pull")
    everything = first | second | third
    wait_until(lambda: everything == consumed([popping]), "all by pulling")
    wait_until(lambda: scene.lag() == 0, "no lag")


def _sent_until(scene: Scene, bodies: set[str], reached: object) -> bool:
    assert callable(reached)
    _send(scene, sorted(bodies))
    return bool(reached())


def test_our_members_and_theirs_share_a_group(scene: Scene) -> None:
    scene.mode(GROUP, "POP")
    theirs = scene.join("a")
    wait_until(lambda: "started" in theirs.lines, "the member")
    ours: set[str] = set()

    async def story() -> None:
        first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        consumer = PopConsumer(scene.cluster.address, group=GROUP, consume_from=first)
        async with consumer.subscribe(TOPIC):
            load = scene.load(0)  # more than one that waits would take as it comes
            async with asyncio.timeout(60):
                while len(ours) <= 100 or len(theirs.got) <= 100:
                    messages = await consumer.receive(timeout=1)
                    ours.update(message.body.decode() for message in messages)
                    await consumer.ack(messages)
            accepted = await asyncio.to_thread(load.stop)
            async with asyncio.timeout(60):
                while not accepted <= ours | consumed([theirs]):
                    messages = await consumer.receive(timeout=1)
                    ours.update(message.body.decode() for message in messages)
                    await consumer.ack(messages)

    asyncio.run(story())
    assert len(ours) > 100
    assert len(theirs.got) > 100
    assert not ours & consumed([theirs])


def _send(scene: Scene, bodies: list[str]) -> None:
    from pocketmq.blocking.producer import Producer
    from pocketmq.model.message import Message

    with Producer(scene.cluster.address, group="senders") as producer:
        for body in bodies:
            producer.send(Message(TOPIC, body.encode()))
