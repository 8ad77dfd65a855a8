"""Load balancing done by the broker (5.x)."""

from pocketmq.model.kinds import MessageModel, MessageRequestMode
from pocketmq.model.queue import MessageQueue
from pocketmq.model.value import WireValue


class AssignmentQuery(WireValue, frozen=True, kw_only=True):
    """A member asks for its queues (Java: QueryAssignmentRequestBody)."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str | None = None
    message_model: MessageModel | None = None


class QueueAssignment(WireValue, frozen=True, kw_only=True):
    """One queue of a member, and how to get its messages (Java: MessageQueueAssignment)."""

    message_queue: MessageQueue | None = None
    mode: MessageRequestMode = MessageRequestMode.PULL
    attachments: dict[str, str] | None = None


class Assignments(WireValue, frozen=True, kw_only=True):
    """A member's queues; None means that nothing is known and the member keeps what it has."""

    message_queue_assignments: list[QueueAssignment] | None = None


class RequestMode(WireValue, frozen=True, kw_only=True):
    """How a group gets a topic's messages (Java: SetMessageRequestModeRequestBody)."""

    topic: str | None = None
    consumer_group: str | None = None
    mode: MessageRequestMode = MessageRequestMode.PULL
    pop_share_queue_num: int = 0


class RequestModes(WireValue, frozen=True, kw_only=True):
    """Every such choice of a broker, by topic and group."""

    message_request_mode_map: dict[str, dict[str, RequestMode]] = {}
