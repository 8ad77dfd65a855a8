"""Changes to a real cluster: on every broker that has it, and what was not asked for stays."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq import aio
from pocketmq.dashboard.actions.changing import ChangeActions, GroupChange, TopicChange
from pocketmq.dashboard.desk import Actions
from pocketmq.dashboard.views import Views
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import Absent, InvalidInput, RouteNotFound
from pocketmq.model import GroupConfig, TopicConfig
from pocketmq.model.names import dead_letter_topic


@asynccontextmanager
async def changing(*, allowed: bool = True) -> AsyncIterator[tuple[ChangeActions, aio.Admin]]:
    async with Cluster(brokers=2) as cluster, aio.Admin(cluster.address) as admin:
        yield Actions(admin, Views(admin), allowed=allowed).changing, admin


async def topic_configs(admin: aio.Admin, topic: str) -> list[TopicConfig]:
    return [each.value[topic] for each in await admin.topics.configs() if topic in each.value]


async def test_a_topic_is_changed_where_it_is_and_deleted() -> None:
    async with changing() as (act, admin):
        (first, _) = await admin.brokers.masters()
        made = TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4)
        made_here = (await admin.topics.create(made, address=first.address)).all()
        assert len(made_here) == 1
        assert await act.change_topic("me", "orders", TopicChange(6, 2, 4)) == 1
        (config,) = await topic_configs(admin, "orders")
        assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (6, 2, 4)
        assert await act.delete_topic("me", "orders") == 2
        with pytest.raises(RouteNotFound):
            await admin.topics.route("orders")
        with pytest.raises(Absent):
            await act.change_topic("me", "orders", TopicChange(6, 2, 4))


async def test_a_group_is_made_changed_and_deleted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pocketmq.dashboard.actions")
    async with changing() as (act, admin):
        change = GroupChange(retries=3, consume=True, broadcast=False, orderly=False)
        assert await act.create_group("me", "billing", change) == 2
        with pytest.raises(InvalidInput, match="exists already"):
            await act.create_group("me", "billing", change)
        kept = GroupConfig(group_name="billing", retry_queue_nums=5, consume_timeout_minute=7)
        (await admin.groups.create(kept)).all()
        change = GroupChange(retries=9, consume=False, broadcast=True, orderly=True)
        assert await act.change_group("me", "billing", change) == 2
        for answer in await admin.groups.config("billing"):
            config = answer.value
            assert (config.retry_max_times, config.consume_enable) == (9, False)
            assert (config.consume_broadcast_enable, config.consume_message_orderly) == (True, True)
            assert (config.retry_queue_nums, config.consume_timeout_minute) == (5, 7)
        await admin.topics.create(TopicConfig(topic_name="orders", read_queue_nums=1))
        (queue, *_) = (await admin.topics.route("orders")).subscribe_queues("orders")
        await admin.offsets.commit("billing", queue, 5)
        assert (await admin.groups.progress("billing", "orders")).queues[queue].consumer_offset == 5
        assert await act.delete_group("me", "billing") == 2
        await act.create_group("me", "billing", change)
        progress = await admin.groups.progress("billing", "orders")
        assert 5 not in {each.consumer_offset for each in progress.queues.values()}
        assert await act.delete_group("me", "billing") == 2
        assert (await admin.groups.config("billing")).answers == ()
        assert dead_letter_topic("billing") not in await admin.topics.names()
        with pytest.raises(Absent):
            await act.change_group("me", "billing", change)
    assert "user=me action=\"delete group 'billing'\"" in caplog.text


async def test_a_setting_of_one_broker_is_changed() -> None:
    async with changing() as (act, admin):
        (first, second) = await admin.brokers.masters()
        assert await act.change_setting("me", first.address, "defaultTopicQueueNums", "3") == 1
        told = {
            each.place: each.value["defaultTopicQueueNums"] for each in await admin.brokers.config()
        }
        assert told[first] == "3" != told[second]
        with pytest.raises(InvalidInput, match="no setting 'nonsense'"):
            await act.change_setting("me", first.address, "nonsense", "3")


async def test_nothing_is_changed_where_actions_are_off_or_brokers_need_it() -> None:
    async with changing(allowed=False) as (act, _):
        group = GroupChange(1, True, True, False)
        for work in (
            act.change_topic("me", "orders", TopicChange(6, 2, 4)),
            act.delete_topic("me", "orders"),
            act.create_group("me", "billing", group),
            act.change_group("me", "billing", group),
            act.delete_group("me", "billing"),
            act.change_setting("me", "127.0.0.1:1", "x", "y"),
        ):
            with pytest.raises(InvalidInput, match="actions are off"):
                await work
    async with changing() as (act, _):
        for work in (
            act.delete_topic("me", "rmq_sys_nothing"),
            act.delete_topic("me", "SCHEDULE_TOPIC_XXXX"),
            act.change_topic("me", "rmq_sys_wheel_timer", TopicChange(6, 2, 4)),
            act.delete_group("me", "CID_RMQ_SYS_TRANS"),
            act.change_group("me", "TOOLS_CONSUMER", group),
        ):
            with pytest.raises(InvalidInput, match=r"is a system .*; it cannot be changed here"):
                await work


@pytest.mark.parametrize("values", [(0, 1, 6), (1, 1025, 6), (1, 1, 0), (1, 1, 7), (-1, 1, 6)])
def test_what_no_topic_can_have_is_refused(values: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidInput):
        TopicChange(*values)


@pytest.mark.parametrize("retries", [-1, 1001])
def test_what_no_group_can_have_is_refused(retries: int) -> None:
    with pytest.raises(InvalidInput, match="0 to 1000 retries"):
        GroupChange(retries, True, True, False)
