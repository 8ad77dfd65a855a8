"""The mappings of static topics on one broker. Belongs to the broker's loop."""

from collections.abc import Iterable

from pocketmq.balance.static_topics.checks import accepted
from pocketmq.balance.static_topics.ranges import registered
from pocketmq.broker.core.config_table import ConfigTable
from pocketmq.model.topics import TopicMapping, TopicMappingDetail

MAX_MAPPINGS = 10_000


class MappingTable(ConfigTable[TopicMappingDetail]):
    """Mappings by topic; empty on brokers without static topics."""

    kind = "static_topic"

    def __init__(self, *, now_ms: int = 0) -> None:
        super().__init__(TopicMappingDetail, MAX_MAPPINGS, now_ms)

    def update(self, topic: str, wanted: TopicMappingDetail, now_ms: int, *, force: bool) -> None:
        """Take a mapping over if it may replace the old one. Raises `MappingRefused`."""
        self.put(topic, accepted(wanted, self.entries.get(topic), force=force), now_ms)

    def registered(self, topics: Iterable[str] | None) -> dict[str, TopicMapping]:
        """Return what name servers need of the mappings of some topics, or of all for None."""
        chosen = self.entries if topics is None else topics
        return {name: registered(self.entries[name]) for name in chosen if name in self.entries}
