"""What is known of a group at one moment: members, queues, who holds which. Values alone."""

import msgspec

from pocketmq.model.kinds import MessageModel
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.requests.client_calls import (
    PROP_CONSUME_TYPE,
    PROP_ORDERLY,
    ProcessQueueBody,
    RunningInfo,
)
from pocketmq.protocol.requests.groups import ConsumerConnections
from pocketmq.protocol.requests.stats import QueueProgress


class GroupFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A group as its brokers and members tell; what nobody told is missing, not empty."""

    group: str
    views: dict[str, ConsumerConnections]
    """The members as each broker lists them."""
    unseen_brokers: dict[str, str]
    """Brokers that did not answer, with the reason."""
    running: dict[str, RunningInfo]
    """What members say of themselves."""
    silent: dict[str, str]
    """Members that did not answer, with the reason."""
    queues: dict[str, tuple[MessageQueue, ...]]
    """The queues of every topic some member subscribes."""
    progress: dict[MessageQueue, QueueProgress]
    now_ms: int

    def members(self) -> list[str]:
        """Name all members any broker lists, in the order the members themselves use."""
        return sorted(
            {
                connection.client_id
                for view in self.views.values()
                for connection in view.connection_set
                if connection.client_id is not None
            }
        )

    def holders(self) -> dict[MessageQueue, list[str]]:
        """Tell who holds each queue, by the members' own word; queues dropped do not count."""
        holders: dict[MessageQueue, list[str]] = {}
        for member, info in sorted(self.running.items()):
            for queue, held in info.mq_table.items():
                if not held.dropped:
                    holders.setdefault(queue, []).append(member)
            for queue, popped in info.mq_pop_table.items():
                if not popped.dropped:
                    holders.setdefault(queue, []).append(member)
        return holders

    def model(self) -> MessageModel | None:
        """Give how the group shares messages, if any broker tells."""
        models = [view.message_model for view in self.views.values() if view.connection_set]
        return next((model for model in models if model is not None), None)

    def held(self, member: str, queue: MessageQueue) -> ProcessQueueBody | None:
        """Give what a member holds of a queue."""
        info = self.running.get(member)
        return None if info is None else info.mq_table.get(queue)


def is_push(info: RunningInfo) -> bool:
    """Tell whether a member has handlers called."""
    return info.properties.get(PROP_CONSUME_TYPE) == "CONSUME_PASSIVELY"


def is_orderly(info: RunningInfo) -> bool:
    """Tell whether a member locks its queues."""
    return info.properties.get(PROP_ORDERLY, "").lower() == "true"
