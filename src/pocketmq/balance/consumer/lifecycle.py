"""What a consumer does when it starts and when it stops, step by step.

The order is Java's but for one step: a stop stores offsets before it unlocks queues. In Java's
order an heir could lock a queue and read its offset from before, and handle messages twice.

Only the order and the conditions are here; each step is the shell's to carry out. Where a step can
fail, its docstring says what follows.
"""

from enum import Enum

import msgspec

from pocketmq.balance.consumer.instructions import Instruction, SendHeartbeats
from pocketmq.balance.consumer.schedule import FetchRoutes
from pocketmq.balance.profile import Profile
from pocketmq.model import ConsumeType, MessageModel
from pocketmq.model.groups import TAG
from pocketmq.model.names import retry_topic


class OffsetPlace(Enum):
    """Where a consumer keeps its offsets."""

    BROKER = "broker"
    LOCAL_FILE = "local file"


class CheckSettings(Instruction, frozen=True):
    """Refuse invalid settings."""


class SubscribeRetryTopic(Instruction, frozen=True):
    """Subscribe the group's retry topic with `*`."""

    topic: str


class ChooseInstanceName(Instruction, frozen=True):
    """Replace the instance name `DEFAULT` by one that is unique to this process."""


class JoinSession(Instruction, frozen=True):
    """Get or make the session of the client id."""


class LoadOffsets(Instruction, frozen=True):
    """Open the offset store and read what it holds."""

    place: OffsetPlace


class StartConsuming(Instruction, frozen=True):
    """Start handler workers, the expiry sweep or the lock renewal."""


class RegisterGroup(Instruction, frozen=True):
    """Register the group in the session; a group that is registered already fails the start."""


class StartSession(Instruction, frozen=True):
    """Start connections and timers."""


class StartPullTasks(Instruction, frozen=True):
    """Start a pull task for each queue the application assigned."""


class CheckClientConfig(Instruction, frozen=True):
    """Ask a broker to check the expressions of these topics; a refusal fails the start."""

    topics: tuple[str, ...]


class RebalanceNow(Instruction, frozen=True):
    """Report `Started` to the schedule, with whether the heartbeat before was accepted."""


class StopConsuming(Instruction, frozen=True):
    """Accept no more messages; wait `wait` seconds for running handlers."""

    wait: float


class UnlockAll(Instruction, frozen=True):
    """Release every lock, waiting for the answers (`locks.unlock_plan`)."""


class PersistAllOffsets(Instruction, frozen=True):
    """Send the offset of every owned queue to the store."""


class Unregister(Instruction, frozen=True):
    """Unregister this member at every broker."""


class StopPullTasks(Instruction, frozen=True):
    """Stop pulling."""


class StopSession(Instruction, frozen=True):
    """Stop timers and connections, unless other clients use the session."""


class DropAllQueues(Instruction, frozen=True):
    """Mark every owned queue dropped and forget it."""


class LifecycleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a consumer that decide its start and stop."""

    profile: Profile
    group: str
    model: MessageModel = MessageModel.CLUSTERING
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    orderly: bool = False
    expression_types: dict[str, str] = {}
    """Subscribed topics with the type of their expression."""
    assigned_by_hand: bool = False
    """A pull consumer whose application assigns queues instead of subscribing."""


def start_steps(consumer: LifecycleSettings) -> tuple[Instruction, ...]:
    """Return the steps of a start. In 5.x a failure from `FetchRoutes` on stops the consumer."""
    clustering = consumer.model is MessageModel.CLUSTERING
    place = OffsetPlace.BROKER if clustering else OffsetPlace.LOCAL_FILE
    named = (ChooseInstanceName(),) if clustering else ()
    checked = tuple(
        topic for topic, kind in consumer.expression_types.items() if kind not in ("", TAG)
    )
    check = (CheckClientConfig(checked),) if checked else ()
    if consumer.consume_type is ConsumeType.CONSUME_ACTIVELY:
        after = StartPullTasks() if consumer.assigned_by_hand else FetchRoutes()
        opened = (JoinSession(), RegisterGroup(), LoadOffsets(place), StartSession())
        # No heartbeat of its own: the session's first comes a second later.
        return (CheckSettings(), *named, *opened, after, *check)
    retry = (SubscribeRetryTopic(retry_topic(consumer.group)),) if clustering else ()
    return (
        CheckSettings(),
        *retry,
        *named,
        JoinSession(),
        LoadOffsets(place),
        StartConsuming(),
        RegisterGroup(),
        StartSession(),
        FetchRoutes(),
        *check,
        SendHeartbeats(),
        RebalanceNow(),
    )


def stop_steps(consumer: LifecycleSettings, wait: float = 0.0) -> tuple[Instruction, ...]:
    """Return the steps of a stop; `wait` is how long running handlers may take to finish."""
    if consumer.consume_type is ConsumeType.CONSUME_ACTIVELY:
        return PersistAllOffsets(), Unregister(), StopPullTasks(), StopSession()
    locked = consumer.orderly and consumer.model is MessageModel.CLUSTERING
    return (
        StopConsuming(wait),
        PersistAllOffsets(),
        *((UnlockAll(),) if locked else ()),
        Unregister(),
        StopSession(),
        DropAllQueues(),
    )
