"""The options of a producer, with Java's defaults (Java: DefaultMQProducer).

Times are seconds, sizes bytes.
"""

import msgspec

from pocketmq.balance.producer.plan import QueueChoice
from pocketmq.balance.profile import COMPRESS_FROM, RETRIES, SEND_TIMEOUT
from pocketmq.client import checks
from pocketmq.client.options import ClientSettings
from pocketmq.errors import InvalidInput
from pocketmq.model import names as topic_names
from pocketmq.model.route import DEFAULT_TOPIC_QUEUE_NUMS
from pocketmq.protocol.compression import DEFAULT_LEVEL, Codec

MAX_MESSAGE = 4 * 1024 * 1024
WINDOW = 4096
WINDOW_BYTES = 100 * 1024 * 1024
BATCH_BYTES = 128 * 1024
_LONGEST_LINGER = 1.0
"""A larger number of seconds is most likely milliseconds."""


class ProducerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a producer sends. Raises `InvalidInput` for a value that can never work."""

    group: str
    """The name that equal producers share; brokers check back on transactions with any of them."""
    send_timeout: float = SEND_TIMEOUT
    """Seconds for one send with all its tries."""
    send_timeout_per_try: float | None = None
    """Seconds for each try but the last (5.x); None: no limit of its own."""
    retries: int = RETRIES
    """Tries after the first, each with another broker if there is one."""
    retry_when_not_stored_ok: bool = False
    """Whether to try the next broker after a status other than SEND_OK."""
    compress_from: int = COMPRESS_FROM
    """Bodies of this size and more are compressed."""
    compression: Codec = Codec.ZLIB
    """The codec. Consumers must support it: 4.x ones support only ZLIB."""
    compression_level: int = DEFAULT_LEVEL
    """From 0, the fastest, to 9, the smallest."""
    max_message_size: int = MAX_MESSAGE
    """Bytes of a body, and of a whole batch."""
    template_topic: str = topic_names.AUTO_CREATE_TOPIC
    """The topic whose route is used for topics that do not exist yet (Java: createTopicKey)."""
    new_topic_queues: int = DEFAULT_TOPIC_QUEUE_NUMS
    """Queues on each broker of a topic that brokers create for its first message."""
    queue_choice: QueueChoice = QueueChoice.JAVA
    """`java`: queues take turns. `adaptive`: those of brokers that are quick and in good health.

    Chooses for messages without `queue`, `ordering_key` or `selector`. Tries are given up early if
    another broker can be tried, so it happens more often that a message is stored twice."""
    avoid_slow_brokers: bool = False
    """Avoid brokers for a while that were slow or failed (Java: sendLatencyFaultEnable)."""
    probe_brokers: bool = False
    """Probe failed brokers in the background (5.x: startDetectorEnable)."""
    window: int = WINDOW
    """Sends in flight at once; further ones wait (back-pressure) while their deadline runs.

    (Java: backPressureForAsyncSendNum, which is off unless asked for.)
    """
    window_bytes: int = WINDOW_BYTES
    """Bytes of bodies in flight at once; a larger message is sent alone.

    This is the upper bound: the limit starts at 4 MiB, grows while responses are quick, and falls
    when they take more than a quarter of `send_timeout`.
    """
    linger: float | None = None
    """Seconds, less than 1, that a message waits for others to share a batch with.

    None: `submit` shares batches without waiting (messages that come while a batch is in flight
    travel together in the next), and `send` sends each message alone. With a number `send` shares
    batches, too (RocketMQ 5: autoBatch; Kafka: linger.ms).
    """
    batch_bytes: int = BATCH_BYTES
    """Bytes of a batch that messages share, at most `max_message_size`; 0: they share none."""
    trace: bool = False
    """Write a trace record of every send."""
    trace_topic: str = topic_names.TRACE_TOPIC
    """The topic of the trace records."""

    def __post_init__(self) -> None:
        checks.settle_kinds(self)
        topic_names.check_producer_group(self.group)
        topic_names.check_topic(self.template_topic)
        topic_names.check_topic(self.trace_topic)
        checks.check_seconds("send_timeout", self.send_timeout, at_least=0.001)
        if self.send_timeout_per_try is not None:
            checks.check_seconds("send_timeout_per_try", self.send_timeout_per_try, at_least=0.001)
        if self.queue_choice is QueueChoice.ADAPTIVE and (
            self.avoid_slow_brokers or self.probe_brokers
        ):
            raise InvalidInput(
                "avoid_slow_brokers and probe_brokers need queue_choice='java'; "
                "queue_choice='adaptive' avoids and probes brokers by itself"
            )
        checks.check_range("retries", self.retries, 0, 1000)
        checks.check_range("compress_from", self.compress_from, 0, 2**31 - 1)
        checks.check_range("compression_level", self.compression_level, 0, 9)
        checks.check_range("max_message_size", self.max_message_size, 1, 2**31 - 1)
        checks.check_range("new_topic_queues", self.new_topic_queues, 1, 65535)
        checks.check_range("window", self.window, 1, 1_000_000)
        checks.check_range("window_bytes", self.window_bytes, 1, 2**40)
        checks.check_range("batch_bytes", self.batch_bytes, 0, 2**31 - 1)
        if self.linger is not None:
            self._check_linger(self.linger)

    def _check_linger(self, linger: float) -> None:
        if not 0 <= linger < _LONGEST_LINGER:  # also refuses NaN
            raise InvalidInput(
                f"linger must be in seconds, from 0 to less than {_LONGEST_LINGER:g}, "
                f"not {linger!r}; 5 ms are linger=0.005"
            )
        if linger >= self.send_timeout:
            raise InvalidInput(
                f"linger={linger:g} leaves no time to send: "
                f"it must be less than send_timeout={self.send_timeout:g}"
            )
        if not self.batch_bytes:
            raise InvalidInput(
                "linger needs batches: set batch_bytes, or leave linger out "
                "(batch_bytes=0 turns sharing off)"
            )


class ProducerSettings(ClientSettings, total=False):
    """The fields of `ProducerOptions`, and of `ClientOptions`, as keywords of a producer."""

    send_timeout: float
    send_timeout_per_try: float | None
    retries: int
    retry_when_not_stored_ok: bool
    compress_from: int
    compression: Codec | checks.CodecWord
    compression_level: int
    max_message_size: int
    template_topic: str
    new_topic_queues: int
    queue_choice: QueueChoice | checks.QueueChoiceWord
    avoid_slow_brokers: bool
    probe_brokers: bool
    window: int
    window_bytes: int
    linger: float | None
    batch_bytes: int
    trace: bool
    trace_topic: str
