"""Which members of a group release queues at once, as brokers tell by language and version."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest

import pocketmq as mq
from pocketmq.balance.profile import JAVA_V5, V5
from pocketmq.client.group import connections as connections_module
from pocketmq.client.group import fellows as module
from pocketmq.client.group.calls import ListedMembers
from pocketmq.client.group.connections import GroupConnections
from pocketmq.client.group.fellows import Fellows, judged
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.push.member import PushMember
from pocketmq.embedded.aio import Cluster
from pocketmq.model import MessageModel
from pocketmq.protocol import RequestCode
from pocketmq.protocol.peers import CURRENT_VERSION, Language, version_number
from pocketmq.protocol.requests.groups import ClientConnection
from pocketmq.protocol.signature import SigningUser, sign
from tests.access.attempts import acl, create_user
from tests.client.group.foreign import NotedRequests, speak_java
from tests.client.group.groups import IP, Member, cluster, member
from tests.loops import leap, leaping, stopped_clock, until
from tests.wire_client import WireClient

FRESH = 60.0
ASKED = int(RequestCode.GET_CONSUMER_CONNECTION_LIST)
GUARDED = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "initAuthenticationUser": '{"username":"root","password":"root-secret"}',
}
SHOP = mq.Credentials(access_key="shop", secret_key="shop-secret")


@pytest.fixture(autouse=True)
def brokers_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member waits a quarter of a second for an answer, and shares it for one.

    On a busy machine both may take longer.
    """
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    monkeypatch.setattr(connections_module, "_FRESH", FRESH)


@asynccontextmanager
async def foreigner(address: str, name: str, **header: Any) -> AsyncIterator[Member]:
    """A member that says of itself what `header` says, or that it is Java's."""
    one = Member(address, name, profile=JAVA_V5)
    speak_java(one.consumer, **header)
    one.consumer.subscribe("orders", "*", one.handle)
    async with one.consumer:
        yield one


def listed(running: Cluster, *names: str) -> ListedMembers:
    (broker,) = running.brokers.values()
    return ListedMembers(tuple(f"{IP}@{name}" for name in names), broker.address)


def fellows_of(one: Member) -> Fellows:
    joined = one.consumer._life.member
    assert joined is not None
    session = one.consumer.session
    return Fellows(session, joined._facts(), GroupConnections(session, "billing"))


async def test_members_of_this_library_are_prompt_and_asked_about_once() -> None:
    async with (
        cluster() as running,
        member(running.address, "a") as a,
        member(running.address, "b"),
    ):
        requests = NotedRequests(a.consumer.session)
        fellows = fellows_of(a)
        assert await fellows.are_prompt("orders", listed(running, "a", "b"))
        before = requests.count(ASKED)
        assert await fellows.are_prompt("orders", listed(running, "b", "a"))
        assert await fellows.are_prompt("other", listed(running, "a", "b"))
        assert await fellows.are_prompt("orders", listed(running, "a"))
        assert before
        assert requests.count(ASKED) == before


@pytest.mark.parametrize(
    ("header", "prompt"),
    [
        ({"language": Language.JAVA}, False),
        ({"language": Language.CPP}, False),
        ({"language": None}, False),
        ({"version": version_number(4, 9, 7)}, False),
        ({"version": CURRENT_VERSION + 2}, True),
    ],
)
async def test_a_client_counts_by_its_language_and_version(
    header: dict[str, Any], prompt: bool
) -> None:
    async with (
        cluster() as running,
        member(running.address, "a") as a,
        foreigner(running.address, "b", **header),
    ):
        assert await fellows_of(a).are_prompt("orders", listed(running, "a", "b")) is prompt
        assert await fellows_of(a).first_pause() == (0.02 if prompt else None)


async def test_a_foreign_member_counts_until_the_change_after_it_has_left() -> None:
    """What it committed last may still be on its way when brokers notify of its departure."""
    async with cluster() as running, member(running.address, "a") as a:
        fellows = fellows_of(a)
        async with foreigner(running.address, "b"):
            assert not await fellows.are_prompt("orders", listed(running, "a", "b"))
        assert not await fellows.are_prompt("orders", listed(running, "a"))
        assert await fellows.are_prompt("orders", listed(running, "a"))


async def test_a_client_id_that_comes_back_is_asked_about_again() -> None:
    async with cluster() as running, member(running.address, "a") as a:
        fellows = fellows_of(a)
        async with member(running.address, "b"):
            assert await fellows.are_prompt("orders", listed(running, "a", "b"))
        assert await fellows.are_prompt("orders", listed(running, "a"))
        async with foreigner(running.address, "b"):
            assert not await fellows.are_prompt("orders", listed(running, "a", "b"))


def test_clients_with_one_id_are_prompt_if_all_are() -> None:
    ours = ClientConnection(client_id="a", language=Language.PYTHON, version=CURRENT_VERSION)
    java = ClientConnection(client_id="a", language=Language.JAVA, version=CURRENT_VERSION)
    other = ClientConnection(client_id="b", language=Language.PYTHON, version=CURRENT_VERSION)
    assert judged([ours, ours, other]) == {"a": True, "b": True}
    assert judged([ours, java, other]) == judged([java, ours, other]) == {"a": False, "b": True}
    assert judged([ClientConnection(language=Language.PYTHON, version=CURRENT_VERSION)]) == {}


async def test_a_member_that_no_broker_describes_counts_as_slow() -> None:
    """The question is not repeated at every rebalance."""
    async with cluster() as running, member(running.address, "a") as a:
        fellows, known = fellows_of(a), listed(running, "a", "ghost")
        requests = NotedRequests(a.consumer.session)
        assert not await fellows.are_prompt("orders", known)
        before = requests.count(ASKED)
        assert not await fellows.are_prompt("orders", known)
        assert before
        assert requests.count(ASKED) == before


async def test_a_broker_that_is_gone_leaves_javas_pauses() -> None:
    async with cluster() as running, member(running.address, "a") as a:
        known = listed(running, "a", "b")
        await running.kill("broker-0")
        assert not await fellows_of(a).are_prompt("orders", known)
        assert await fellows_of(a).first_pause() is None


def _grant(running: Cluster, *actions: str) -> None:
    (broker,) = running.brokers.values()
    with WireClient(broker.address) as root:
        for code, fields, body in (
            create_user("shop", password="shop-secret"),
            acl("shop", "Topic:orders", "Pub", "Sub"),
            acl("shop", "Group:billing", *actions),
        ):
            signed = dict(fields)
            sign(SigningUser("root", b"root-secret"), code, signed, body)
            assert root.ask(code, signed, body).code == 0


@pytest.mark.parametrize(("actions", "prompt"), [(("Sub",), False), (("Sub", "Get"), True)])
async def test_the_right_get_on_the_group_lets_members_see_each_other(
    actions: tuple[str, ...], prompt: bool
) -> None:
    """Without it everything works as in Java, with Java's pauses."""
    async with cluster(config=GUARDED) as running:
        await asyncio.to_thread(_grant, running, *actions)
        async with member(running.address, "a", credentials=SHOP, profile=V5) as a:
            await until(a.queues, "queues")
            assert await fellows_of(a).first_pause() == (0.02 if prompt else None)


async def _begun(one: Member) -> None:
    """Wait until the pause before the first rebalance of a member has begun."""
    joined = one.consumer._life.member
    assert isinstance(joined, PushMember)
    assert isinstance(joined.rebalancing, Rebalancing)
    rebalancing = joined.rebalancing
    await until(lambda: rebalancing._timer is not None, "the first pause")


@leaping
async def test_the_first_rebalance_waits_only_for_members_of_another_kind() -> None:
    async with cluster() as running, AsyncExitStack() as stack:

        async def join(name: str) -> Member:
            one = await stack.enter_async_context(member(running.address, name, profile=V5))
            await _begun(one)
            return one

        with stopped_clock():
            a = await join("a")
            await leap(0.03)
            await until(lambda: len(a.queues()) == 4, "all queues")
            b = await join("b")
            await leap(0.03)
            await until(lambda: len(b.queues()) == 2, "a share")
            await stack.enter_async_context(foreigner(running.address, "j"))
            k = await join("k")
            await leap(0.5)
            for _ in range(20):
                await asyncio.sleep(0)
            assert k.queues() == ()
            await leap(0.6)
            await until(lambda: len(k.queues()) == 1, "a share")


async def test_a_broadcasting_member_waits_for_no_other() -> None:
    async with cluster() as running:
        model = MessageModel.BROADCASTING
        async with member(running.address, profile=V5, model=model) as one:
            assert await fellows_of(one).first_pause() == 0.0
            assert await fellows_of(one).are_prompt("orders", None)


async def test_a_client_with_javas_pauses_asks_nothing() -> None:
    # Its first rebalance, after which every group is checked, comes after the test.
    late = msgspec.structs.replace(JAVA_V5, rebalance_min_interval=20.0)
    async with cluster() as running, member(running.address, profile=late) as one:
        requests = NotedRequests(one.consumer.session)
        assert await fellows_of(one).first_pause() is None
        assert not await fellows_of(one).are_prompt("orders", listed(running, "a"))
        assert requests.count(ASKED) == 0


async def test_one_question_serves_a_rebalance_and_the_checks_of_the_group() -> None:
    async with cluster() as running, member(running.address, "a") as a:
        await until(lambda: len(a.queues()) == 4, "all queues")
        connections = GroupConnections(a.consumer.session, "billing")
        (broker,) = running.brokers.values()
        requests = NotedRequests(a.consumer.session)
        asked = await connections.ask_at(broker.address, 5.0)
        assert asked is not None
        assert await connections.read("orders") is asked
        assert requests.count(ASKED) == 1
        again = await connections.read("orders")
        assert again is not None
        assert again is not asked, "the same answer twice would look like two that agree"
        await connections.ask_at(broker.address, 5.0)
        connections.forget()
        await connections.read("orders")
        assert requests.count(ASKED) == 4


@leaping
async def test_an_answer_from_before_is_not_shared() -> None:
    async with cluster() as running, member(running.address, "a") as a:
        connections = GroupConnections(a.consumer.session, "billing")
        (broker,) = running.brokers.values()
        asked = await connections.ask_at(broker.address, 5.0)
        await leap(FRESH + 1.0)
        assert asked is not None
        assert await connections.read("orders") is not asked


async def test_a_member_that_joins_is_asked_about_once() -> None:
    async with cluster() as running, member(running.address, "a") as a:
        await until(lambda: len(a.queues()) == 4, "all queues")
        joined = a.consumer._life.member
        assert isinstance(joined, PushMember)
        rebalancing = joined.rebalancing
        assert isinstance(rebalancing, Rebalancing)
        # The run goes on with the retry topic, and a check follows.
        run = rebalancing._run_task
        assert run is not None
        await until(run.done, "the first run")
        await until(lambda: not joined._checks._checking, "the first check")

        def runs() -> int:
            return sum(each.runs for each in a.consumer.history if each.topic == "orders")

        requests, before = NotedRequests(a.consumer.session), runs()
        async with member(running.address, "b") as b:
            await until(lambda: len(b.queues()) == len(a.queues()) == 2, "even shares")
            await until(lambda: not joined._checks._checking, "the check")
            assert 1 <= requests.count(ASKED) <= runs() - before
