"""Offsets of groups and queues: reading, committing, resetting them."""

from pocketmq.model import DataVersion, MessageQueue, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import EmptyResponse, Header, Int32, Int64, RpcHeader, TopicHeader
from pocketmq.protocol.peers import CLIENT
from pocketmq.protocol.request import NoHeader, RequestQueue, RequestRight, json_of, request


class ConsumerOffsets(WireValue, frozen=True, kw_only=True):
    """Every committed offset of a broker: `topic@group` to queue id to offset."""

    offset_table: dict[str, dict[int, int]] = {}
    data_version: DataVersion | None = None


class DelayOffsets(WireValue, frozen=True, kw_only=True):
    """How far each delay level has been delivered."""

    offset_table: dict[int, int] = {}
    data_version: DataVersion | None = None


class ResetOffset(WireValue, frozen=True, kw_only=True):
    """The new offset of a group in each queue (Java: ResetOffsetBody)."""

    offset_table: dict[MessageQueue, int] = {}

    def listed(self) -> "ListedResetOffset":
        """Return the form for callers whose language is CPP."""
        return ListedResetOffset(
            offset_table=[
                QueueOffset(
                    topic=queue.topic,
                    broker_name=queue.broker_name,
                    queue_id=queue.queue_id,
                    offset=offset,
                )
                for queue, offset in self.offset_table.items()
            ]
        )


class QueueOffset(WireValue, frozen=True, kw_only=True):
    """A queue and an offset side by side (Java: MessageQueueForC)."""

    topic: str
    broker_name: str
    queue_id: int
    offset: int = 0


class ListedResetOffset(WireValue, frozen=True, kw_only=True):
    """A reset without object keys, for C++ clients (Java: ResetOffsetBodyForC)."""

    offset_table: list[QueueOffset] = []

    def mapped(self) -> ResetOffset:
        """Return the form all other clients get."""
        return ResetOffset(
            offset_table={
                MessageQueue(each.topic, each.broker_name, each.queue_id): each.offset
                for each in self.offset_table
            }
        )


class ConsumerStatus(WireValue, frozen=True, kw_only=True):
    """Offsets as clients hold them in memory (Java: GetConsumerStatusBody).

    A client fills `message_queue_table`; a broker gathers those of all clients, by client id.
    """

    message_queue_table: dict[MessageQueue, int] = {}
    consumer_table: dict[str, dict[MessageQueue, int]] = {}


class CorrectionOffsets(WireValue, frozen=True, kw_only=True):
    """The smallest offset per queue over several groups (Java: QueryCorrectionOffsetBody)."""

    correction_offsets: dict[int, int] = {}


class OffsetMovedBody(WireValue, frozen=True, kw_only=True):
    """The message a broker stores when a pull asked for an offset it does not have."""

    consumer_group: str | None = None
    message_queue: MessageQueue | None = None
    offset_request: int = 0
    offset_new: int = 0


class QueryConsumerOffsetRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks how far a group has come in a queue."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


class QueryConsumerOffsetResponse(Header, frozen=True, kw_only=True):
    """How far a group has come."""

    offset: Int64


class UpdateConsumerOffsetRequest(TopicHeader, frozen=True, kw_only=True):
    """Records how far a group has come in a queue."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64


class SearchOffsetRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for the offset of the first message stored at or after a time."""

    topic: str
    lite_topic: str | None = None
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None  # LOWER, or UPPER for the last of equal times


class SearchOffsetResponse(Header, frozen=True, kw_only=True):
    """The offset found."""

    offset: Int64


class GetMaxOffsetRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for the offset the next message of a queue will get."""

    topic: str
    queue_id: Int32
    committed: bool = True  # false: counting those not yet in the queue's index, too


class GetMaxOffsetResponse(Header, frozen=True, kw_only=True):
    """The offset after the last message."""

    offset: Int64


class GetMinOffsetRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for the first offset a queue still holds."""

    topic: str
    queue_id: Int32


class GetMinOffsetResponse(Header, frozen=True, kw_only=True):
    """The offset of the first message."""

    offset: Int64


class GetEarliestStoreTimeRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks when the first message a queue still holds was stored."""

    topic: str
    queue_id: Int32


class GetEarliestStoreTimeResponse(Header, frozen=True, kw_only=True):
    """When it was stored, -1 if there is none."""

    timestamp: Int64


class ResetOffsetRequest(TopicHeader, frozen=True, kw_only=True):
    """Moves a group to another place; to a broker, and from it on to the group's clients."""

    group: str
    topic: str
    queue_id: Int32 = -1  # -1: all queues (5.x)
    offset: Int64 | None = None  # instead of a time (5.x)
    timestamp: Int64  # -1: behind the last message
    is_force: bool


class CloneGroupOffsetRequest(RpcHeader, frozen=True, kw_only=True):
    """Copies one group's offsets to another group."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class QueryCorrectionOffsetRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks how far the slowest of a topic's groups are, beside one group."""

    filter_groups: str | None = None  # groups to leave out, joined by commas
    compare_group: str
    topic: str


QUERY_CONSUMER_OFFSET = request(
    Code.QUERY_CONSUMER_OFFSET,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    queue=RequestQueue.UNLIMITED,
)
UPDATE_CONSUMER_OFFSET = request(
    Code.UPDATE_CONSUMER_OFFSET,
    UpdateConsumerOffsetRequest,
    EmptyResponse,
    queue=RequestQueue.UNLIMITED,
)
SEARCH_OFFSET_BY_TIMESTAMP = request(
    Code.SEARCH_OFFSET_BY_TIMESTAMP,
    SearchOffsetRequest,
    SearchOffsetResponse,
    right=RequestRight.to("Get", topic="Topic"),
)
GET_MAX_OFFSET = request(
    Code.GET_MAX_OFFSET,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    right=RequestRight.to("Get", topic="Topic"),
)
GET_MIN_OFFSET = request(
    Code.GET_MIN_OFFSET,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    right=RequestRight.to("Get", topic="Topic"),
)
GET_EARLIEST_MSG_STORETIME = request(
    Code.GET_EARLIEST_MSG_STORETIME,
    GetEarliestStoreTimeRequest,
    GetEarliestStoreTimeResponse,
    right=RequestRight.to("Get", topic="Topic"),
)
GET_ALL_CONSUMER_OFFSET = request(
    Code.GET_ALL_CONSUMER_OFFSET,
    NoHeader,
    NoHeader,
    result=json_of(ConsumerOffsets),
    right=RequestRight.on_cluster("Get"),
)
GET_ALL_DELAY_OFFSET = request(
    Code.GET_ALL_DELAY_OFFSET,
    NoHeader,
    NoHeader,
    result=json_of(DelayOffsets),
    right=RequestRight.on_cluster("Get"),
)
RESET_CONSUMER_CLIENT_OFFSET = request(
    Code.RESET_CONSUMER_CLIENT_OFFSET,
    ResetOffsetRequest,
    NoHeader,
    body=json_of(ResetOffset),
    served_by=CLIENT,
)
INVOKE_BROKER_TO_RESET_OFFSET = request(
    Code.INVOKE_BROKER_TO_RESET_OFFSET,
    ResetOffsetRequest,
    NoHeader,
    result=json_of(ResetOffset),
    right=RequestRight.to("Update", group="Group", topic="Topic"),
)
QUERY_CORRECTION_OFFSET = request(
    Code.QUERY_CORRECTION_OFFSET,
    QueryCorrectionOffsetRequest,
    NoHeader,
    result=json_of(CorrectionOffsets),
    right=RequestRight.to(
        "Get", filterGroups="Group", compareGroup="Group", topic="Topic", optional=("filterGroups",)
    ),
)
CLONE_GROUP_OFFSET = request(Code.CLONE_GROUP_OFFSET, CloneGroupOffsetRequest, NoHeader)
