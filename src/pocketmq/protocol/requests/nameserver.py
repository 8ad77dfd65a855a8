"""Name server: brokers that register, routes, and write permissions."""

from pocketmq.model import BrokerData, DataVersion, TopicRoute, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.config_text import PROPERTIES_TEXT
from pocketmq.protocol.header import Header, Int32, Int64, TopicHeader
from pocketmq.protocol.peers import CONTROLLER, NAME_SERVER
from pocketmq.protocol.request import REGISTRATION, NoHeader, json_of, request
from pocketmq.protocol.requests import key_values, topics


class ClusterInfo(WireValue, frozen=True, kw_only=True):
    """Every broker, and which cluster has which. Java writes broker ids as bare keys."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}


class MemberGroup(WireValue, frozen=True, kw_only=True):
    """The brokers that share one name (Java: BrokerMemberGroup)."""

    cluster: str | None = None
    broker_name: str | None = None
    broker_addrs: dict[int, str] = {}


class MemberGroupAnswer(WireValue, frozen=True, kw_only=True):
    """A name server's answer about one broker name (Java: GetBrokerMemberGroupResponseBody)."""

    broker_member_group: MemberGroup | None = None


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
    """Heartbeat of a broker, to name servers and controllers."""

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


REGISTER_BROKER = request(
    Code.REGISTER_BROKER,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    body=REGISTRATION,
    result=json_of(key_values.KVTable),
    served_by=NAME_SERVER,
)
UNREGISTER_BROKER = request(
    Code.UNREGISTER_BROKER, UnregisterBrokerRequest, NoHeader, served_by=NAME_SERVER
)
GET_ROUTEINFO_BY_TOPIC = request(
    Code.GET_ROUTEINFO_BY_TOPIC,
    GetRouteRequest,
    NoHeader,
    result=json_of(TopicRoute, bare_integer_keys=True),
    served_by=NAME_SERVER,
)
GET_BROKER_CLUSTER_INFO = request(
    Code.GET_BROKER_CLUSTER_INFO,
    NoHeader,
    NoHeader,
    result=json_of(ClusterInfo, bare_integer_keys=True),
    served_by=NAME_SERVER,
)
WIPE_WRITE_PERM_OF_BROKER = request(
    Code.WIPE_WRITE_PERM_OF_BROKER,
    WipeWritePermissionRequest,
    WipeWritePermissionResponse,
    served_by=NAME_SERVER,
)
GET_ALL_TOPIC_LIST_FROM_NAMESERVER = request(
    Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    NoHeader,
    NoHeader,
    result=json_of(topics.TopicNames),
    served_by=NAME_SERVER,
)
DELETE_TOPIC_IN_NAMESRV = request(
    Code.DELETE_TOPIC_IN_NAMESRV, DeleteTopicInNameServerRequest, NoHeader, served_by=NAME_SERVER
)
REGISTER_TOPIC_IN_NAMESRV = request(
    Code.REGISTER_TOPIC_IN_NAMESRV,
    RegisterTopicRequest,
    NoHeader,
    body=json_of(TopicRoute),
    served_by=NAME_SERVER,
)
GET_TOPICS_BY_CLUSTER = request(
    Code.GET_TOPICS_BY_CLUSTER,
    GetTopicsByClusterRequest,
    NoHeader,
    result=json_of(topics.TopicNames),
    served_by=NAME_SERVER,
)
GET_SYSTEM_TOPIC_LIST_FROM_NS = request(
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS,
    NoHeader,
    NoHeader,
    result=json_of(topics.TopicNames),
    served_by=NAME_SERVER,
)
GET_UNIT_TOPIC_LIST = request(
    Code.GET_UNIT_TOPIC_LIST,
    NoHeader,
    NoHeader,
    result=json_of(topics.TopicNames),
    served_by=NAME_SERVER,
)
GET_HAS_UNIT_SUB_TOPIC_LIST = request(
    Code.GET_HAS_UNIT_SUB_TOPIC_LIST,
    NoHeader,
    NoHeader,
    result=json_of(topics.TopicNames),
    served_by=NAME_SERVER,
)
GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = request(
    Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    NoHeader,
    NoHeader,
    result=json_of(topics.TopicNames),
    served_by=NAME_SERVER,
)
UPDATE_NAMESRV_CONFIG = request(
    Code.UPDATE_NAMESRV_CONFIG, NoHeader, NoHeader, body=PROPERTIES_TEXT, served_by=NAME_SERVER
)
GET_NAMESRV_CONFIG = request(
    Code.GET_NAMESRV_CONFIG, NoHeader, NoHeader, result=PROPERTIES_TEXT, served_by=NAME_SERVER
)
QUERY_DATA_VERSION = request(
    Code.QUERY_DATA_VERSION,
    QueryDataVersionRequest,
    QueryDataVersionResponse,
    body=json_of(DataVersion),
    result=json_of(DataVersion),
    served_by=NAME_SERVER,
)
ADD_WRITE_PERM_OF_BROKER = request(
    Code.ADD_WRITE_PERM_OF_BROKER,
    AddWritePermissionRequest,
    AddWritePermissionResponse,
    served_by=NAME_SERVER,
)
GET_BROKER_MEMBER_GROUP = request(
    Code.GET_BROKER_MEMBER_GROUP,
    GetBrokerMemberGroupRequest,
    NoHeader,
    result=json_of(MemberGroupAnswer, bare_integer_keys=True),
    served_by=NAME_SERVER,
)
BROKER_HEARTBEAT = request(
    Code.BROKER_HEARTBEAT, BrokerHeartbeatRequest, NoHeader, served_by=NAME_SERVER | CONTROLLER
)
