"""Groups on a broker: their settings, their topics, their connections."""

from pocketmq.protocol.header import Header, Int32, RpcHeader, TopicHeader


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
