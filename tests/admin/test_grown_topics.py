"""An admin that stays open finds what has come since it first looked."""

from pocketmq.aio import Admin
from pocketmq.embedded.aio import Cluster
from pocketmq.model import MessageQueue, TopicConfig


async def test_queues_on_a_broker_the_topic_came_to_later_are_found() -> None:
    async with Cluster(brokers=2) as cluster, Admin(cluster.address) as admin:
        config = TopicConfig(topic_name="grown", read_queue_nums=1, write_queue_nums=1)
        for name in ("broker-0", "broker-1"):
            address = cluster.brokers[name].address
            (await admin.topics.create(config, address=address)).all()
            assert await admin.offsets.bounds(MessageQueue("grown", name, 0)) == (0, 0)
