"""The asyncio admin on a running cluster, in process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq import aio, errors
from pocketmq.admin.brokers import status_of
from pocketmq.admin.gathered import Gathered
from pocketmq.admin.offsets import LATEST
from pocketmq.aio import Admin
from pocketmq.balance.allocation import Average
from pocketmq.balance.what_if import MemberJoined
from pocketmq.embedded.aio import Cluster
from pocketmq.model import GroupConfig, MessageQueue, TopicConfig
from tests.loops import until


class Desk:
    """A cluster with an admin before it."""

    def __init__(self, cluster: Cluster, admin: aio.Admin) -> None:
        self.cluster = cluster
        self.admin = admin

    async def send(self, topic: str, count: int) -> list[aio.SendReceipt]:
        async with aio.Producer(self.cluster.address, group="senders") as producer:
            return [
                await producer.send(aio.Message(topic, b"%d" % number, keys=[f"k{number}"]))
                for number in range(count)
            ]


@asynccontextmanager
async def desk(brokers: int = 2, patience: float = 10.0, **options: object) -> AsyncIterator[Desk]:
    async with (
        Cluster(brokers=brokers, **options) as cluster,  # type: ignore[arg-type]
        aio.Admin(cluster.address, timeout=patience) as admin,
    ):
        yield Desk(cluster, admin)


async def test_brokers_tell_how_they_are_and_are_told_settings() -> None:
    async with desk() as here:
        brokers = here.admin.brokers
        assert [place.broker for place in await brokers.all()] == ["broker-0", "broker-1"]
        status = await brokers.status("DefaultCluster")
        assert status.complete
        assert [each.active for each in status.values()] == [True, True]
        address = here.cluster.brokers["broker-1"].address
        (await brokers.change_config({"defaultTopicQueueNums": "3"}, address=address)).all()
        configs = {each.place.broker: each.value for each in await brokers.config()}
        assert configs["broker-1"]["defaultTopicQueueNums"] == "3"
        assert configs["broker-0"]["defaultTopicQueueNums"] != "3"
        with pytest.raises(
            errors.Absent, match=r"cluster 'none'.*; the name server has DefaultCluster"
        ):
            await brokers.all("none")


async def test_a_topic_is_made_shown_and_deleted() -> None:
    async with desk() as here:
        topics = here.admin.topics
        config = TopicConfig(topic_name="made", read_queue_nums=2, write_queue_nums=2)
        assert len((await topics.create(config, "DefaultCluster")).all()) == 2
        assert "made" in await topics.names()
        assert await topics.clusters("made") == ["DefaultCluster"]
        await here.send("made", 8)
        status = await topics.status("made")
        assert [held.max_offset for held in status.queues.values()] == [2, 2, 2, 2]
        changes = (await topics.set_permission("made", 4, "DefaultCluster")).all()
        assert [(each.before, each.after) for each in changes] == [(6, 4), (6, 4)]
        assert {data.perm for data in (await topics.route("made")).queue_datas} == {4}
        (await topics.delete("made", "DefaultCluster")).all()
        with pytest.raises(errors.RouteNotFound):
            await topics.route("made")


async def test_an_ordered_topic_tells_name_servers_its_order() -> None:
    async with desk() as here:
        config = TopicConfig(topic_name="inorder", write_queue_nums=3, order=True)
        (await here.admin.topics.create(config, "DefaultCluster")).all()
        order = await here.admin.name_servers.get("ORDER_TOPIC_CONFIG", "inorder")
        assert order == "broker-0:3;broker-1:3"


async def test_values_of_name_servers_are_stored_and_deleted() -> None:
    async with desk(brokers=1) as here:
        servers = here.admin.name_servers
        (await servers.put("space", "key", "value")).all()
        assert await servers.get("space", "key") == "value"
        assert await servers.values("space") == {"key": "value"}
        (await servers.delete("space", "key")).all()
        assert await servers.get("space", "key") is None
        assert (await servers.wipe_write_permission("broker-0")).all()[0] > 0


async def test_messages_are_found_by_id_key_place_and_time() -> None:
    async with desk() as here:
        await here.cluster.create_topic("orders", 2)
        receipts = await here.send("orders", 10)
        messages, receipt = here.admin.messages, receipts[7]
        assert receipt.offset_message_id is not None
        by_unique_id = await messages.by_id("orders", receipt.message_id)
        by_place_id = await messages.by_id("orders", receipt.offset_message_id)
        by_offset = await messages.by_offset(receipt.queue, receipt.queue_offset)
        (by_key,) = (await messages.by_key("orders", "k7")).messages
        found = [by_unique_id, by_place_id, by_offset, by_key]
        assert {message.body for message in found} == {b"7"}
        assert {message.message_id for message in found} == {receipt.message_id}
        everything = await messages.between("orders", 0, 2**62)
        assert {message.body for message in everything.messages} == {b"%d" % n for n in range(10)}
        assert (await messages.between("orders", 0, 1)).messages == []
        with pytest.raises(errors.Absent, match="no message"):
            await messages.by_id("orders", "0" * 32)
        with pytest.raises(errors.Absent, match="the queue holds 0 to"):
            await messages.by_offset(receipt.queue, 99)


async def test_an_id_never_leads_to_a_server_outside_the_cluster() -> None:
    """An offset id holds an address; whoever made it up shall not choose whom we connect to."""
    async with desk(brokers=1) as here:
        await here.cluster.create_topic("orders", 1)
        with pytest.raises(errors.Absent):
            await here.admin.messages.by_id("orders", "CB007101000026AB0000000000000000")


async def test_a_group_is_seen_explained_and_moved() -> None:
    async with desk() as here:
        await here.cluster.create_topic("orders", 2)
        await here.send("orders", 8)
        admin, handled = here.admin, []
        consumer = aio.PushConsumer(here.cluster.address, group="g", consume_from="first")

        async def handle(message: aio.ReceivedMessage) -> None:
            handled.append(message.body)

        consumer.subscribe("orders", "*", handle)
        async with consumer:
            await until(lambda: len(handled) == 8, "all messages")
            await consumer.commit()
            views = await admin.groups.connections("g")
            assert [len(view.connection_set) for view in views.all()] == [1, 1]
            running = await admin.groups.running("g")
            assert list(running.members) == [consumer.session.client_id]
            # Offsets are told, not asked for: they may be on their way.
            async with asyncio.timeout(10):
                while (progress := await admin.groups.progress("g", "orders")).lag != 0:
                    await consumer.commit()
            assert (len(progress.queues), progress.lag) == (4, 0)
            story = await admin.balance.explain("g")
            assert (story.strategy, story.findings) == ("AVG", ())
            answer = await admin.balance.what_if("g", Average(), [MemberJoined("zzz")])
            assert answer.overall.moved == 2
            assert (await admin.balance.rebalance("g")).complete
            (glance,) = await admin.overview.groups(["g"])
            assert glance.progress is not None
            assert (len(glance.members or ()), glance.progress.lag) == (1, 0)
            moved = await admin.offsets.reset("g", "orders", 0)
            assert {each.offset for each in moved.queues.values()} == {0}
            await until(lambda: len(handled) == 16, "all messages again")
        with pytest.raises(errors.Absent):
            await admin.groups.progress("strangers")


async def test_members_that_subscribe_differently_are_found() -> None:
    async with desk(brokers=1) as here:
        await here.cluster.create_topic("orders", 2)

        async def handle(message: aio.ReceivedMessage) -> None:
            pass

        first = aio.PushConsumer(here.cluster.address, group="g").subscribe("orders", "a", handle)
        second = aio.PushConsumer(here.cluster.address, group="g").subscribe("orders", "b", handle)
        async with first, second:
            await until(lambda: all(map(_holds_one, (first, second))), "one queue each")
            story = await here.admin.balance.explain("g")
            assert [finding.kind for finding in story.findings] == ["different subscriptions"]
            assert "orders (a)" in story.findings[0].evidence
            assert "orders (b)" in story.findings[0].evidence


def _holds_one(consumer: aio.PushConsumer) -> bool:
    return len(consumer.assignment().get("orders", ())) == 1


async def test_offsets_of_a_group_that_is_offline() -> None:
    async with desk(brokers=1) as here:
        await here.cluster.create_topic("orders", 2)
        await here.send("orders", 4)
        for group in ("g", "other"):
            (await here.admin.groups.create(GroupConfig(group_name=group), "DefaultCluster")).all()
        queues = [MessageQueue("orders", "broker-0", number) for number in range(2)]
        for queue in queues:
            await here.admin.offsets.commit("g", queue, 1)
        assert (await here.admin.groups.progress("g", "orders")).lag == 2
        result = await here.admin.offsets.reset_stored("g", "orders", LATEST)
        assert [each.offset for each in result.queues.values()] == [2, 2]
        assert (await here.admin.groups.progress("g", "orders")).lag == 0
        back = await here.admin.offsets.reset_stored("g", "orders", LATEST, back_only=True)
        assert not back.online
        assert await here.admin.offsets.clone("g", "other", "orders") == dict.fromkeys(queues, 2)
        assert (await here.admin.groups.progress("other", "orders")).lag == 0


async def test_a_broker_that_is_silent_is_missing_and_not_zero() -> None:
    async with desk(patience=1.0, faults=True) as here:
        await here.cluster.create_topic("orders", 2)
        await here.send("orders", 8)
        await here.cluster.partition("broker-1")
        status = await here.admin.topics.status("orders")
        assert {queue.broker_name for queue in status.queues} == {"broker-0"}
        (missing,) = status.missing
        assert missing.place.broker == "broker-1"
        assert isinstance(missing.error, errors.TransportError)
        (traffic,) = await here.admin.overview.traffic(["orders"])
        assert (traffic.into.tps, traffic.into.day) == (None, None)
        await here.cluster.heal("broker-1")


async def test_copies_of_messages_are_sent_and_the_originals_stay() -> None:
    async with desk(brokers=1) as here:
        await here.cluster.create_topic("orders", 1)
        (receipt,) = await here.send("orders", 1)
        message = await here.admin.messages.by_id("orders", receipt.message_id)
        (again,) = await here.admin.messages.resend([message])
        assert again.receipt is not None
        assert again.receipt.queue_offset == 1
        copy = await here.admin.messages.by_offset(again.receipt.queue, 1)
        assert (copy.body, copy.keys) == (message.body, message.keys)
        assert copy.message_id != message.message_id


async def test_without_a_name_server_it_does_not_start() -> None:
    with pytest.raises(errors.NameServersUnreachable):
        async with aio.Admin("127.0.0.1:1"):
            raise AssertionError


async def test_it_is_used_between_start_and_close() -> None:
    async with Cluster() as cluster:
        admin = aio.Admin(cluster.address)
        with pytest.raises(errors.ClientClosed):
            await admin.topics.names()
        async with admin:
            assert await admin.topics.names()
        with pytest.raises(errors.ClientClosed):
            await admin.topics.names()
        with pytest.raises(errors.InvalidInput, match="started once"):
            await admin.start()


def test_nobody_asked_is_a_complete_answer() -> None:
    nobody: Gathered[int] = Gathered(())
    assert (nobody.complete, nobody.all(), nobody.some().values()) == (True, [], [])


async def test_queues_on_a_broker_the_topic_came_to_later_are_found() -> None:
    async with Cluster(brokers=2) as cluster, Admin(cluster.address) as admin:
        config = TopicConfig(topic_name="grown", read_queue_nums=1, write_queue_nums=1)
        for name in ("broker-0", "broker-1"):
            address = cluster.brokers[name].address
            (await admin.topics.create(config, address=address)).all()
            assert await admin.offsets.bounds(MessageQueue("grown", name, 0)) == (0, 0)


@pytest.mark.parametrize("name", ["getTransferredTps", "getTransferedTps"])
def test_rates_are_read_as_5_x_and_4_9_spell_them(name: str) -> None:
    assert status_of({name: "1.5 2 3"}).get_tps == 1.5


@pytest.mark.parametrize("told", [{}, {"putTps": "  "}, {"putTps": "soon"}])
def test_what_is_not_told_yet_is_unknown(told: dict[str, str]) -> None:
    assert status_of(told).put_tps is None
