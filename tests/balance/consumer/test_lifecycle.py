"""Start and stop, step by step."""

import msgspec

from pocketmq.balance.consumer.instructions import SendHeartbeats
from pocketmq.balance.consumer.lifecycle import (
    CheckClientConfig,
    CheckSettings,
    ChooseInstanceName,
    Consumer,
    DropAllQueues,
    JoinSession,
    LoadOffsets,
    OffsetPlace,
    PersistAllOffsets,
    RebalanceNow,
    RegisterGroup,
    StartConsuming,
    StartPullTasks,
    StartSession,
    StopConsuming,
    StopPullTasks,
    StopSession,
    SubscribeRetryTopic,
    UnlockAll,
    Unregister,
    start_steps,
    stop_steps,
)
from pocketmq.balance.consumer.schedule import FetchRoutes
from pocketmq.balance.profile import V5
from pocketmq.model.kinds import ConsumeType, MessageModel

PUSH = Consumer(profile=V5, group="g", expression_types={"T": "TAG", "U": "SQL92", "V": ""})
LITE = msgspec.structs.replace(PUSH, consume_type=ConsumeType.CONSUME_ACTIVELY)


def test_a_push_consumer_starts_in_javas_order() -> None:
    assert start_steps(PUSH) == (
        CheckSettings(),
        SubscribeRetryTopic("%RETRY%g"),
        ChooseInstanceName(),
        JoinSession(),
        LoadOffsets(OffsetPlace.BROKER),
        StartConsuming(),
        RegisterGroup(),
        StartSession(),
        FetchRoutes(),
        CheckClientConfig(("U",)),
        SendHeartbeats(),
        RebalanceNow(),
    )


def test_a_broadcasting_consumer_keeps_its_name_and_its_offsets_here_and_retries_nothing() -> None:
    consumer = msgspec.structs.replace(PUSH, model=MessageModel.BROADCASTING, expression_types={})
    assert start_steps(consumer) == (
        CheckSettings(),
        JoinSession(),
        LoadOffsets(OffsetPlace.LOCAL_FILE),
        StartConsuming(),
        RegisterGroup(),
        StartSession(),
        FetchRoutes(),
        SendHeartbeats(),
        RebalanceNow(),
    )


def test_a_pull_consumer_starts_without_retry_topic_and_heartbeat() -> None:
    assert start_steps(LITE) == (
        CheckSettings(),
        ChooseInstanceName(),
        JoinSession(),
        RegisterGroup(),
        LoadOffsets(OffsetPlace.BROKER),
        StartSession(),
        FetchRoutes(),
        CheckClientConfig(("U",)),
    )


def test_a_pull_consumer_with_queues_assigned_by_hand_starts_their_tasks() -> None:
    steps = start_steps(msgspec.structs.replace(LITE, assigned_by_hand=True, expression_types={}))
    assert steps[-2:] == (StartSession(), StartPullTasks())


def test_a_push_consumer_stops_in_javas_order() -> None:
    assert stop_steps(PUSH, wait=2.0) == (
        StopConsuming(2.0),
        PersistAllOffsets(),
        Unregister(),
        StopSession(),
        DropAllQueues(),
    )


def test_an_orderly_consumer_stores_its_offsets_before_it_unlocks_queues() -> None:
    """An heir reads the offset as soon as it has the lock. Java's order is the other one."""
    steps = stop_steps(msgspec.structs.replace(PUSH, orderly=True))
    assert steps[:4] == (StopConsuming(0.0), PersistAllOffsets(), UnlockAll(), Unregister())
    broadcasting = msgspec.structs.replace(PUSH, orderly=True, model=MessageModel.BROADCASTING)
    assert UnlockAll() not in stop_steps(broadcasting)


def test_a_pull_consumer_stops_in_javas_order() -> None:
    assert stop_steps(LITE) == (PersistAllOffsets(), Unregister(), StopPullTasks(), StopSession())
