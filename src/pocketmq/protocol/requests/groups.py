"""Groups on a broker: their set-up, subscriptions and connections."""

import msgspec

from pocketmq.model.groups import GroupConfig, Subscription
from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType, MessageModel
from pocketmq.model.value import DataVersion, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, RpcHeader, TopicHeader
from pocketmq.protocol.peers import Language
from pocketmq.protocol.request import NoHeader, RequestRight, json_of, request
from pocketmq.protocol.requests.topics import TopicNames


class GroupTableBody(WireValue, frozen=True, kw_only=True):
    """Every group's set-up on a broker (Java: SubscriptionGroupWrapper).

    `forbidden_table` holds, per group and topic, the bits of what is switched off (5.x).
    """

    subscription_group_table: dict[str, GroupConfig] = {}
    forbidden_table: dict[str, dict[str, int]] = {}
    data_version: DataVersion = DataVersion()


class GroupConfigs(WireValue, frozen=True, kw_only=True):
    """Several groups to create or change at once (Java: SubscriptionGroupList)."""

    group_config_list: list[GroupConfig] = []


class GroupForbidden(WireValue, frozen=True, kw_only=True):
    """Whether a group may read a topic (5.x)."""

    topic: str | None = None
    group: str | None = None
    readable: bool | None = None


class GroupSubscription(WireValue, frozen=True, kw_only=True):
    """What a group subscribes of a topic (Java: QuerySubscriptionResponseBody)."""

    subscription_data: Subscription | None = None
    group: str | None = None
    topic: str | None = None


class ConsumedBy(WireValue, frozen=True, kw_only=True):
    """Which groups have consumed a message and which not yet (Java: ConsumeByWho)."""

    consumed_group: list[str] = []
    not_consumed_group: list[str] = []
    topic: str | None = None
    queue_id: int = 0
    offset: int = 0


class ClientConnection(WireValue, frozen=True, kw_only=True):
    """One connected client (Java: Connection)."""

    client_id: str | None = None
    client_addr: str | None = None
    language: Language | None = None
    version: int = 0


class ConsumerConnections(WireValue, frozen=True, kw_only=True):
    """The members of a group with what they subscribe (Java: ConsumerConnection)."""

    connection_set: list[ClientConnection] = []
    subscription_table: dict[str, Subscription] = {}
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None


class ProducerConnections(WireValue, frozen=True, kw_only=True):
    """The members of a producer group (Java: ProducerConnection)."""

    connection_set: list[ClientConnection] = []


class ProducerInfo(WireValue, frozen=True, kw_only=True):
    """One producer, with the time of its last heartbeat in milliseconds."""

    client_id: str | None = None
    remote_ip: str | None = msgspec.field(name="remoteIP", default=None)
    language: Language | None = None
    version: int = 0
    last_update_timestamp: int = 0


class ProducerTableBody(WireValue, frozen=True, kw_only=True):
    """Every producer of a broker, by group (Java: ProducerTableInfo)."""

    data: dict[str, list[ProducerInfo]] = {}


class GetAllSubscriptionGroupRequest(Header, frozen=True, kw_only=True):
    """Asks for the settings of all groups, or of some of them (5.x)."""

    group_seq: Int32 | None = None  # where to continue; absent in 4.9, which reads all at once
    data_version: str | None = None  # the state read so far, as JSON
    max_group_num: Int32 | None = None


class GetAllSubscriptionGroupResponse(Header, frozen=True, kw_only=True):
    """How many groups there are; absent from 4.9, where all are given."""

    total_group_num: Int32 | None = None


class GetSubscriptionGroupConfigRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks for the settings of a group."""

    group: str


class DeleteSubscriptionGroupRequest(RpcHeader, frozen=True, kw_only=True):
    """Deletes a group, and its offsets if wanted."""

    group_name: str
    clean_offset: bool = False  # the name in 5.x
    remove_offset: bool = False  # the name in 4.9

    @property
    def deletes_offsets(self) -> bool:
        """Whether the caller, of either version, wants the offsets deleted, too."""
        return self.clean_offset or self.remove_offset


class UpdateGroupForbiddenRequest(TopicHeader, frozen=True, kw_only=True):
    """Forbids a group to read a topic, allows it again, or asks which it is."""

    group: str
    topic: str
    readable: bool | None = None


class QueryTopicsByConsumerRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks which topics a group consumes."""

    group: str


class QuerySubscriptionByConsumerRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for a group's subscription to a topic."""

    group: str
    topic: str | None = None


class GetConsumerConnectionsRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks who is connected as a member of a consumer group."""

    consumer_group: str


class GetProducerConnectionsRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks who is connected as a producer of a group."""

    producer_group: str


class GetAllProducersRequest(Header, frozen=True, kw_only=True):
    """Asks for all connected producers."""


UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = request(
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    NoHeader,
    NoHeader,
    body=json_of(GroupConfig),
    right=RequestRight.on_cluster("Update"),
)
GET_ALL_SUBSCRIPTIONGROUP_CONFIG = request(
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    GetAllSubscriptionGroupRequest,
    GetAllSubscriptionGroupResponse,
    result=json_of(GroupTableBody),
    right=RequestRight.on_cluster("Get"),
)
GET_CONSUMER_CONNECTION_LIST = request(
    Code.GET_CONSUMER_CONNECTION_LIST,
    GetConsumerConnectionsRequest,
    NoHeader,
    result=json_of(ConsumerConnections),
    right=RequestRight.to("Get", consumerGroup="Group"),
)
GET_PRODUCER_CONNECTION_LIST = request(
    Code.GET_PRODUCER_CONNECTION_LIST,
    GetProducerConnectionsRequest,
    NoHeader,
    result=json_of(ProducerConnections),
)
DELETE_SUBSCRIPTIONGROUP = request(
    Code.DELETE_SUBSCRIPTIONGROUP,
    DeleteSubscriptionGroupRequest,
    NoHeader,
    right=RequestRight.to("Delete", groupName="Group"),
)
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = request(
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    NoHeader,
    NoHeader,
    body=json_of(GroupConfigs),
    right=RequestRight.on_cluster("Update"),
)
GET_ALL_PRODUCER_INFO = request(
    Code.GET_ALL_PRODUCER_INFO, GetAllProducersRequest, NoHeader, result=json_of(ProducerTableBody)
)
QUERY_TOPICS_BY_CONSUMER = request(
    Code.QUERY_TOPICS_BY_CONSUMER,
    QueryTopicsByConsumerRequest,
    NoHeader,
    result=json_of(TopicNames),
    right=RequestRight.to("Get", group="Group"),
)
QUERY_SUBSCRIPTION_BY_CONSUMER = request(
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER,
    QuerySubscriptionByConsumerRequest,
    NoHeader,
    result=json_of(GroupSubscription),
    right=RequestRight.to("Get", group="Group", topic="Topic", optional=("topic",)),
)
GET_SUBSCRIPTIONGROUP_CONFIG = request(
    Code.GET_SUBSCRIPTIONGROUP_CONFIG,
    GetSubscriptionGroupConfigRequest,
    NoHeader,
    result=json_of(GroupConfig),
    right=RequestRight.to("Get", group="Group"),
)
UPDATE_AND_GET_GROUP_FORBIDDEN = request(
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
    UpdateGroupForbiddenRequest,
    NoHeader,
    result=json_of(GroupForbidden),
    right=RequestRight.to("Update", group="Group", topic="Topic"),
)
