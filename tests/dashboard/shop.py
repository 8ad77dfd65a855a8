"""A cluster with something to look at, for the pages of a dashboard."""

import pocketmq as mq
from pocketmq.errors import RouteNotFound
from tests.server_process import wait_for


class Shop:
    """A cluster with life in it: topics, groups with members, messages that wait or were given up."""

    def __init__(self, cluster: mq.Cluster) -> None:
        self.cluster = cluster
        self.address = cluster.address
        self.producer = mq.Producer(self.address, group="shop", send_timeout=30.0).start()
        self.consumers: list[mq.PushConsumer] = []
        self.handled: list[str] = []

    def join(self, group: str, topic: str, name: str) -> mq.PushConsumer:
        """Start one more member of a group."""
        consumer = mq.PushConsumer(
            self.address, group=group, instance_name=name, consume_from="first"
        )
        consumer.subscribe(topic, "*", lambda message: self.handled.append(message.message_id))
        consumer.start()
        self.consumers.append(consumer)
        return consumer

    def give_up(self, group: str, topic: str, bodies: list[bytes]) -> None:
        """Make a group discard messages at the first failure."""
        with mq.Admin(self.address) as admin:
            consumer = mq.PushConsumer(self.address, group=group, consume_from="first")
            consumer.subscribe(topic, "*", _refuse)
            with consumer:
                for number, body in enumerate(bodies):
                    self.producer.send(mq.Message(topic, body, keys=[f"L{number}"]))

                def given_up() -> bool:
                    try:
                        return len(admin.messages.dead_letters(group).messages) == len(bodies)
                    except RouteNotFound:
                        return False

                wait_for(given_up, "the letters to be given up")

    def close(self) -> None:
        """Make all members leave."""
        for consumer in self.consumers:
            consumer.close()
        self.producer.close()


def _refuse(_message: object) -> None:
    raise mq.RetryLater(delay_level=-1)  # a dead letter at once
