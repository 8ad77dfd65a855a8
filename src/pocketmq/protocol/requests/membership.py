"""Who is there: heartbeats, leaving, members of a group, locks on queues."""

from msgspec import field

from pocketmq.protocol.header import Header, RpcHeader


class HeartbeatRequest(RpcHeader, frozen=True, kw_only=True):
    """Tells a broker which groups a client belongs to; the groups are the body."""


class HeartbeatResponse(Header, frozen=True, kw_only=True):
    """What a 5.x broker says of heartbeats that leave out known subscriptions."""

    is_support_heart_beat_v2: bool = field(name="IS_SUPPORT_HEART_BEAT_V2", default=False)
    is_sub_change: bool = field(name="IS_SUB_CHANGE", default=False)


class UnregisterClientRequest(RpcHeader, frozen=True, kw_only=True):
    """Takes a client out of its groups, one call for each."""

    client_id: str = field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GetConsumerListRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks for the client ids of a group's members."""

    consumer_group: str


class NotifyConsumerIdsChangedRequest(RpcHeader, frozen=True, kw_only=True):
    """Tells a client that its group's members have changed."""

    consumer_group: str


class LockQueuesRequest(RpcHeader, frozen=True, kw_only=True):
    """Locks queues for one member of a group; the queues are the body."""


class UnlockQueuesRequest(RpcHeader, frozen=True, kw_only=True):
    """Gives locked queues back; the queues are the body."""
