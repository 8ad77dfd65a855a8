"""Topics on a broker: creating, deleting, listing them."""

from pocketmq.model import DataVersion, TopicConfig, WireValue
from pocketmq.model.topics import MappedTopicConfig, TopicMapping, TopicMappingDetail
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, RpcHeader, TopicHeader
from pocketmq.protocol.request import NoHeader, RequestRight, json_of, request
from pocketmq.protocol.requests.stats import TopicStatsBody


class TopicNames(WireValue, frozen=True, kw_only=True):
    """A list of topics (Java: TopicList)."""

    topic_list: list[str] = []
    broker_addr: str | None = None


class TopicTableBody(WireValue, frozen=True, kw_only=True):
    """Every topic's set-up on a broker (Java: TopicConfigSerializeWrapper).

    5.x adds the last three fields (Java: TopicConfigAndMappingSerializeWrapper).
    """

    topic_config_table: dict[str, TopicConfig] = {}
    data_version: DataVersion = DataVersion()
    mapping_data_version: DataVersion | None = None
    topic_queue_mapping_detail_map: dict[str, TopicMappingDetail] | None = None
    topic_queue_mapping_info_map: dict[str, TopicMapping] | None = None


class TopicConfigs(WireValue, frozen=True, kw_only=True):
    """Several topics to create or change at once (Java: CreateTopicListRequestBody)."""

    topic_config_list: list[TopicConfig] = []


class GroupNames(WireValue, frozen=True, kw_only=True):
    """The groups that consume a topic (Java: GroupList)."""

    group_list: list[str] = []


class CreateTopicRequest(TopicHeader, frozen=True, kw_only=True):
    """Creates or changes a topic; also a static topic, with its mapping as the body."""

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32  # 4 read, 2 write
    topic_filter_type: str  # SINGLE_TAG or MULTI_TAG
    topic_sys_flag: Int32 | None = None
    order: bool
    attributes: str | None = None  # changes such as `+k=v,-k` (5.x)
    force: bool = False


class CreateTopicListRequest(RpcHeader, frozen=True, kw_only=True):
    """Creates or changes topics; they are the body."""


class DeleteTopicRequest(TopicHeader, frozen=True, kw_only=True):
    """Deletes a topic and its messages."""

    topic: str


class GetTopicConfigRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for the settings of a topic."""

    topic: str


class GetAllTopicConfigRequest(Header, frozen=True, kw_only=True):
    """Asks for the settings of all topics, or of some of them (5.x)."""

    topic_seq: Int32 | None = None  # where to continue; absent in 4.9, which reads all at once
    data_version: str | None = None  # the state read so far, as JSON
    max_topic_num: Int32 | None = None


class GetAllTopicConfigResponse(Header, frozen=True, kw_only=True):
    """How many topics there are; absent means that all were given."""

    total_topic_num: Int32 | None = None


class GetTopicStatsRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for the bounds of a topic's queues."""

    topic: str


class QueryTopicConsumersRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks which groups consume a topic."""

    topic: str


UPDATE_AND_CREATE_TOPIC = request(
    Code.UPDATE_AND_CREATE_TOPIC,
    CreateTopicRequest,
    NoHeader,
    announced=True,
    right=RequestRight.to("Create", topic="Topic"),
)
UPDATE_AND_CREATE_STATIC_TOPIC = request(
    Code.UPDATE_AND_CREATE_STATIC_TOPIC,
    CreateTopicRequest,
    NoHeader,
    body=json_of(TopicMappingDetail),
    announced=True,
    right=RequestRight.on_cluster("Update"),
)
UPDATE_AND_CREATE_TOPIC_LIST = request(
    Code.UPDATE_AND_CREATE_TOPIC_LIST,
    CreateTopicListRequest,
    NoHeader,
    body=json_of(TopicConfigs),
    announced=True,
    right=RequestRight.on_cluster("Update"),
)
GET_ALL_TOPIC_CONFIG = request(
    Code.GET_ALL_TOPIC_CONFIG,
    GetAllTopicConfigRequest,
    GetAllTopicConfigResponse,
    result=json_of(TopicTableBody),
    right=RequestRight.on_cluster("Get"),
)
GET_TOPIC_STATS_INFO = request(
    Code.GET_TOPIC_STATS_INFO,
    GetTopicStatsRequest,
    NoHeader,
    result=json_of(TopicStatsBody),
    right=RequestRight.to("Get", topic="Topic"),
)
DELETE_TOPIC_IN_BROKER = request(
    Code.DELETE_TOPIC_IN_BROKER,
    DeleteTopicRequest,
    NoHeader,
    right=RequestRight.to("Delete", topic="Topic"),
)
QUERY_TOPIC_CONSUME_BY_WHO = request(
    Code.QUERY_TOPIC_CONSUME_BY_WHO,
    QueryTopicConsumersRequest,
    NoHeader,
    result=json_of(GroupNames),
    right=RequestRight.to("Get", topic="Topic"),
)
GET_SYSTEM_TOPIC_LIST_FROM_BROKER = request(
    Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    NoHeader,
    NoHeader,
    result=json_of(TopicNames),
    right=RequestRight.on_cluster("Get"),
)
GET_TOPIC_CONFIG = request(
    Code.GET_TOPIC_CONFIG,
    GetTopicConfigRequest,
    NoHeader,
    result=json_of(MappedTopicConfig),
    right=RequestRight.to("Get", topic="Topic"),
)
