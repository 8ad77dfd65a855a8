"""What a producer can be told, with Java's defaults (Java: DefaultMQProducer).

Times are seconds, sizes bytes.
"""

import msgspec

from pocketmq.balance.producer.rules import COMPRESS_FROM, RETRIES, SEND_TIMEOUT
from pocketmq.client.checks import check_range, check_seconds
from pocketmq.model.names import AUTO_CREATE_TOPIC, check_producer_group, check_topic
from pocketmq.model.route import DEFAULT_TOPIC_QUEUE_NUMS

MAX_MESSAGE = 4 * 1024 * 1024


class ProducerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a producer sends. Raises `InvalidInput` for a value that can never work."""

    group: str
    send_timeout: float = SEND_TIMEOUT
    """For one send with all its tries."""
    send_timeout_per_try: float | None = None
    """What one try may take of it while others are left (5.x)."""
    retries: int = RETRIES
    """Further tries after the first, each with another broker if there is one."""
    retry_when_not_stored_ok: bool = False
    """Whether a status other than SEND_OK makes the next broker be tried."""
    compress_from: int = COMPRESS_FROM
    """Bodies of this size and more are compressed."""
    max_message_size: int = MAX_MESSAGE
    template_topic: str = AUTO_CREATE_TOPIC
    """The topic whose route a topic gets that does not exist yet (Java: createTopicKey)."""
    new_topic_queues: int = DEFAULT_TOPIC_QUEUE_NUMS
    """Queues of a topic that brokers make for its first message, on each of them."""
    avoid_slow_brokers: bool = False
    """Leave brokers alone for a while that were slow or failed (Java: sendLatencyFaultEnable)."""
    probe_brokers: bool = False
    """Find out beside the sends whether failed brokers are back (5.x: startDetectorEnable)."""

    def __post_init__(self) -> None:
        check_producer_group(self.group)
        check_topic(self.template_topic)
        check_seconds("send_timeout", self.send_timeout, at_least=0.001)
        if self.send_timeout_per_try is not None:
            check_seconds("send_timeout_per_try", self.send_timeout_per_try, at_least=0.001)
        check_range("retries", self.retries, 0, 1000)
        check_range("compress_from", self.compress_from, 0, 2**31 - 1)
        check_range("max_message_size", self.max_message_size, 1, 2**31 - 1)
        check_range("new_topic_queues", self.new_topic_queues, 1, 65535)
