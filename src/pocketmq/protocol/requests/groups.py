"""Groups on a broker: their settings, their topics, their connections."""

from pocketmq.model.group_config import GroupConfig
from pocketmq.protocol.bodies.connections import (
    ConsumerConnections,
    ProducerConnections,
    ProducerTable,
)
from pocketmq.protocol.bodies.groups import (
    GroupConfigs,
    GroupForbidden,
    GroupSubscription,
    GroupTable,
)
from pocketmq.protocol.bodies.topics import TopicNames
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.header import Header, Int32, RpcHeader, TopicHeader
from pocketmq.protocol.request import NoHeader, request


class GetAllSubscriptionGroupRequest(Header, frozen=True, kw_only=True):
    """Asks for the settings of all groups, or of some of them (5.x)."""

    group_seq: Int32 | None = None  # where to go on; absent in 4.9, which takes all at once
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
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, NoHeader, NoHeader, body=json_of(GroupConfig)
)
GET_ALL_SUBSCRIPTIONGROUP_CONFIG = request(
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    GetAllSubscriptionGroupRequest,
    GetAllSubscriptionGroupResponse,
    result=json_of(GroupTable),
)
GET_CONSUMER_CONNECTION_LIST = request(
    Code.GET_CONSUMER_CONNECTION_LIST,
    GetConsumerConnectionsRequest,
    NoHeader,
    result=json_of(ConsumerConnections),
)
GET_PRODUCER_CONNECTION_LIST = request(
    Code.GET_PRODUCER_CONNECTION_LIST,
    GetProducerConnectionsRequest,
    NoHeader,
    result=json_of(ProducerConnections),
)
DELETE_SUBSCRIPTIONGROUP = request(
    Code.DELETE_SUBSCRIPTIONGROUP, DeleteSubscriptionGroupRequest, NoHeader
)
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = request(
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, NoHeader, NoHeader, body=json_of(GroupConfigs)
)
GET_ALL_PRODUCER_INFO = request(
    Code.GET_ALL_PRODUCER_INFO, GetAllProducersRequest, NoHeader, result=json_of(ProducerTable)
)
QUERY_TOPICS_BY_CONSUMER = request(
    Code.QUERY_TOPICS_BY_CONSUMER,
    QueryTopicsByConsumerRequest,
    NoHeader,
    result=json_of(TopicNames),
)
QUERY_SUBSCRIPTION_BY_CONSUMER = request(
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER,
    QuerySubscriptionByConsumerRequest,
    NoHeader,
    result=json_of(GroupSubscription),
)
GET_SUBSCRIPTIONGROUP_CONFIG = request(
    Code.GET_SUBSCRIPTIONGROUP_CONFIG,
    GetSubscriptionGroupConfigRequest,
    NoHeader,
    result=json_of(GroupConfig),
)
UPDATE_AND_GET_GROUP_FORBIDDEN = request(
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
    UpdateGroupForbiddenRequest,
    NoHeader,
    result=json_of(GroupForbidden),
)
