"""Name server: brokers that register, routes, and write permissions."""

from pocketmq.protocol.header import Header, Int32, Int64, TopicHeader


class RegisterBrokerRequest(Header, frozen=True, kw_only=True):
    """Registers a broker with its topics, which are the body."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    heartbeat_timeout_millis: Int64 | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int32 = 0  # 0: not checked


class RegisterBrokerResponse(Header, frozen=True, kw_only=True):
    """Where a slave finds its master."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnregisterBrokerRequest(Header, frozen=True, kw_only=True):
    """Takes a broker out of all routes."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class BrokerHeartbeatRequest(Header, frozen=True, kw_only=True):
    """Says that a broker is alive; to name servers and controllers."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64 | None = None
    epoch: Int32 | None = None
    max_offset: Int64 | None = None
    confirm_offset: Int64 | None = None
    heartbeat_timeout_mills: Int64 | None = None  # Java's spelling
    election_priority: Int32 | None = None


class GetBrokerMemberGroupRequest(Header, frozen=True, kw_only=True):
    """Asks for the addresses of a broker's replicas."""

    cluster_name: str
    broker_name: str


class QueryDataVersionRequest(Header, frozen=True, kw_only=True):
    """Asks whether a broker's topics are known in their latest state."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionResponse(Header, frozen=True, kw_only=True):
    """Whether the broker has to register again."""

    changed: bool


class GetRouteRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for the brokers and queues of a topic."""

    topic: str
    accept_standard_json_only: bool | None = None  # map keys must be quoted


class RegisterTopicRequest(TopicHeader, frozen=True, kw_only=True):
    """Makes a topic known by its route, which is the body."""

    topic: str


class DeleteTopicInNameServerRequest(TopicHeader, frozen=True, kw_only=True):
    """Forgets a topic's route, in all clusters or in one."""

    topic: str
    cluster_name: str | None = None


class GetTopicsByClusterRequest(Header, frozen=True, kw_only=True):
    """Asks for the topics of a cluster."""

    cluster: str


class WipeWritePermissionRequest(Header, frozen=True, kw_only=True):
    """Makes all topics of a broker read-only in their routes."""

    broker_name: str


class WipeWritePermissionResponse(Header, frozen=True, kw_only=True):
    """How many topics changed."""

    wipe_topic_count: Int32


class AddWritePermissionRequest(Header, frozen=True, kw_only=True):
    """Makes all topics of a broker writable again."""

    broker_name: str


class AddWritePermissionResponse(Header, frozen=True, kw_only=True):
    """How many topics changed."""

    add_topic_count: Int32
