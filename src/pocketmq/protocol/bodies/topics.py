"""Topics: names, and the set-up of one, several or all of them."""

from pocketmq.model.data_version import DataVersion
from pocketmq.model.topic_config import TopicConfig
from pocketmq.model.topic_mapping import TopicMapping, TopicMappingDetail
from pocketmq.model.value import WireValue


class TopicNames(WireValue, frozen=True, kw_only=True):
    """A list of topics (Java: TopicList)."""

    topic_list: list[str] = []
    broker_addr: str | None = None


class TopicTable(WireValue, frozen=True, kw_only=True):
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
