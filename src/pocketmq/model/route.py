"""Where a topic lives, and which of its queues producers and consumers may use."""

from pocketmq.model.flags import Permission
from pocketmq.model.java_strings import java_order
from pocketmq.model.queue import MessageQueue
from pocketmq.model.value import WireValue

MASTER_ID = 0


class BrokerData(WireValue, frozen=True, kw_only=True):
    """One broker name with the addresses of its master (id 0) and slaves."""

    cluster: str = ""
    broker_name: str
    broker_addrs: dict[int, str] = {}
    zone_name: str | None = None
    enable_acting_master: bool | None = None

    def master(self) -> str | None:
        """Give the master's address, if one is registered."""
        return self.broker_addrs.get(MASTER_ID)


class QueueData(WireValue, frozen=True, kw_only=True):
    """How many queues of a topic one broker has, and what they may be used for."""

    broker_name: str
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


class TopicRoute(WireValue, frozen=True, kw_only=True):
    """A name server's answer for one topic (Java: TopicRouteData)."""

    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}

    def publish_queues(self, topic: str) -> list[MessageQueue]:
        """List the queues producers choose from, in Java's order.

        An order configuration wins and gives its own order. Otherwise brokers go by name, and only
        writable queues of brokers with a living master count.
        """
        if self.order_topic_conf:
            return _ordered_queues(topic, self.order_topic_conf)
        masters = {broker.broker_name for broker in self.broker_datas if broker.master()}
        return [
            MessageQueue(topic, data.broker_name, queue_id)
            for data in sorted(self.queue_datas, key=lambda data: java_order(data.broker_name))
            if Permission(data.perm).writable() and data.broker_name in masters
            for queue_id in range(data.write_queue_nums)
        ]

    def subscribe_queues(self, topic: str) -> set[MessageQueue]:
        """List the queues consumers share: all readable ones, masters or not."""
        return {
            MessageQueue(topic, data.broker_name, queue_id)
            for data in self.queue_datas
            if Permission(data.perm).readable()
            for queue_id in range(data.read_queue_nums)
        }


def _ordered_queues(topic: str, configuration: str) -> list[MessageQueue]:
    """Read `broker-a:4;broker-b:2` as the queues it names."""
    queues = []
    for part in configuration.split(";"):
        name, _, count = part.partition(":")
        queues += [MessageQueue(topic, name, queue_id) for queue_id in range(int(count or 0))]
    return queues
