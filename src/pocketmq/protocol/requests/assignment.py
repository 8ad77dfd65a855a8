"""Who consumes which queues: assignment by the broker, and the locks of orderly consumers."""

import msgspec

from pocketmq.model import MessageModel, MessageQueue, MessageRequestMode, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import RpcHeader
from pocketmq.protocol.request import NoHeader, RequestQueue, RequestRight, json_of, request


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


class LockQueues(WireValue, frozen=True, kw_only=True):
    """Queues a member wants for itself (Java: LockBatchRequestBody)."""

    consumer_group: str
    client_id: str
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = []


class UnlockQueues(WireValue, frozen=True, kw_only=True):
    """Queues a member gives back (Java: UnlockBatchRequestBody)."""

    consumer_group: str
    client_id: str
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = []


class LockedQueues(WireValue, frozen=True, kw_only=True):
    """Queues that are the member's now (Java: LockBatchResponseBody)."""

    locked: list[MessageQueue] = msgspec.field(name="lockOKMQSet", default_factory=list)


class LockQueuesRequest(RpcHeader, frozen=True, kw_only=True):
    """Locks queues for one member of a group; the queues are the body."""


class UnlockQueuesRequest(RpcHeader, frozen=True, kw_only=True):
    """Unlock queues; the queues are the body."""


LOCK_BATCH_MQ = request(
    Code.LOCK_BATCH_MQ,
    LockQueuesRequest,
    NoHeader,
    body=json_of(LockQueues),
    result=json_of(LockedQueues),
)
UNLOCK_BATCH_MQ = request(
    Code.UNLOCK_BATCH_MQ, UnlockQueuesRequest, NoHeader, body=json_of(UnlockQueues)
)
QUERY_ASSIGNMENT = request(
    Code.QUERY_ASSIGNMENT,
    NoHeader,
    NoHeader,
    body=json_of(AssignmentQuery),
    result=json_of(Assignments),
    queue=RequestQueue.UNLIMITED,
)
SET_MESSAGE_REQUEST_MODE = request(
    Code.SET_MESSAGE_REQUEST_MODE,
    NoHeader,
    NoHeader,
    body=json_of(RequestMode),
    queue=RequestQueue.UNLIMITED,
    right=RequestRight.on_cluster("Update"),
)
GET_ALL_MESSAGE_REQUEST_MODE = request(
    Code.GET_ALL_MESSAGE_REQUEST_MODE,
    NoHeader,
    NoHeader,
    result=json_of(RequestModes),
    right=RequestRight.on_cluster("Get"),
)
