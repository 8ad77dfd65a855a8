"""Start and stop, step by step."""

import msgspec

from pocketmq.balance.consumer import lifecycle
from pocketmq.balance.consumer.instructions import SendHeartbeats
from pocketmq.balance.consumer.schedule import FetchRoutes
from pocketmq.balance.profile import V5
from pocketmq.model import ConsumeType, MessageModel

PUSH = lifecycle.LifecycleSettings(
    profile=V5, group="g", expression_types={"T": "TAG", "U": "SQL92", "V": ""}
)
LITE = msgspec.structs.replace(PUSH, consume_type=ConsumeType.CONSUME_ACTIVELY)


def test_a_push_consumer_starts_in_javas_order() -> None:
    assert lifecycle.start_steps(PUSH) == (
        lifecycle.CheckSettings(),
        lifecycle.SubscribeRetryTopic("%RETRY%g"),
        lifecycle.ChooseInstanceName(),
        lifecycle.JoinSession(),
        lifecycle.LoadOffsets(lifecycle.OffsetPlace.BROKER),
        lifecycle.StartConsuming(),
        lifecycle.RegisterGroup(),
        lifecycle.StartSession(),
        FetchRoutes(),
        lifecycle.CheckClientConfig(("U",)),
        SendHeartbeats(),
        lifecycle.RebalanceNow(),
    )


def test_a_broadcasting_consumer_keeps_its_name_and_its_offsets_here_and_retries_nothing() -> None:
    consumer = msgspec.structs.replace(PUSH, model=MessageModel.BROADCASTING, expression_types={})
    assert lifecycle.start_steps(consumer) == (
        lifecycle.CheckSettings(),
        lifecycle.JoinSession(),
        lifecycle.LoadOffsets(lifecycle.OffsetPlace.LOCAL_FILE),
        lifecycle.StartConsuming(),
        lifecycle.RegisterGroup(),
        lifecycle.StartSession(),
        FetchRoutes(),
        SendHeartbeats(),
        lifecycle.RebalanceNow(),
    )


def test_a_pull_consumer_starts_without_retry_topic_and_heartbeat() -> None:
    assert lifecycle.start_steps(LITE) == (
        lifecycle.CheckSettings(),
        lifecycle.ChooseInstanceName(),
        lifecycle.JoinSession(),
        lifecycle.RegisterGroup(),
        lifecycle.LoadOffsets(lifecycle.OffsetPlace.BROKER),
        lifecycle.StartSession(),
        FetchRoutes(),
        lifecycle.CheckClientConfig(("U",)),
    )


def test_a_pull_consumer_with_queues_assigned_by_hand_starts_their_tasks() -> None:
    steps = lifecycle.start_steps(
        msgspec.structs.replace(LITE, assigned_by_hand=True, expression_types={})
    )
    assert steps[-2:] == (lifecycle.StartSession(), lifecycle.StartPullTasks())


def test_a_push_consumer_stops_in_javas_order() -> None:
    assert lifecycle.stop_steps(PUSH, wait=2.0) == (
        lifecycle.StopConsuming(2.0),
        lifecycle.PersistAllOffsets(),
        lifecycle.Unregister(),
        lifecycle.StopSession(),
        lifecycle.DropAllQueues(),
    )


def test_an_orderly_consumer_stores_its_offsets_before_it_unlocks_queues() -> None:
    """An heir reads the offset as soon as it has the lock. Java's order is the other one."""
    steps = lifecycle.stop_steps(msgspec.structs.replace(PUSH, orderly=True))
    assert steps[:4] == (
        lifecycle.StopConsuming(0.0),
        lifecycle.PersistAllOffsets(),
        lifecycle.UnlockAll(),
        lifecycle.Unregister(),
    )
    broadcasting = msgspec.structs.replace(PUSH, orderly=True, model=MessageModel.BROADCASTING)
    assert lifecycle.UnlockAll() not in lifecycle.stop_steps(broadcasting)


def test_a_pull_consumer_stops_in_javas_order() -> None:
    assert lifecycle.stop_steps(LITE) == (
        lifecycle.PersistAllOffsets(),
        lifecycle.Unregister(),
        lifecycle.StopPullTasks(),
        lifecycle.StopSession(),
    )
