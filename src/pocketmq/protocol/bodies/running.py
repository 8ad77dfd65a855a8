"""A consumer's account of itself, and of one message it was told to consume."""

import msgspec

from pocketmq.model.kinds import ConsumeResult
from pocketmq.model.queue import MessageQueue
from pocketmq.model.subscription import Subscription
from pocketmq.model.value import WireValue

PROP_NAME_SERVER = "PROP_NAMESERVER_ADDR"
PROP_THREADS = "PROP_THREADPOOL_CORE_SIZE"
PROP_ORDERLY = "PROP_CONSUMEORDERLY"
PROP_CONSUME_TYPE = "PROP_CONSUME_TYPE"
PROP_CLIENT_VERSION = "PROP_CLIENT_VERSION"
PROP_START_TIMESTAMP = "PROP_CONSUMER_START_TIMESTAMP"
"""Milliseconds; Java's tools fail without it."""


class ProcessQueueInfo(WireValue, frozen=True, kw_only=True):
    """What a push consumer holds of a queue. Timestamps are milliseconds."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    dropped: bool = msgspec.field(name="droped", default=False)
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class PopProcessQueueInfo(WireValue, frozen=True, kw_only=True):
    """What a consumer in pop mode holds of a queue (5.x)."""

    wait_ack_count: int = 0
    dropped: bool = msgspec.field(name="droped", default=False)
    last_pop_timestamp: int = 0


class ConsumeStatus(WireValue, frozen=True, kw_only=True):
    """A consumer's rates for one topic; times are milliseconds."""

    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = 0


class RunningInfo(WireValue, frozen=True, kw_only=True):
    """Everything a consumer tells about itself (Java: ConsumerRunningInfo)."""

    properties: dict[str, str] = {}
    subscription_set: list[Subscription] = []
    mq_table: dict[MessageQueue, ProcessQueueInfo] = {}
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] = {}
    status_table: dict[str, ConsumeStatus] = {}
    user_consumer_info: dict[str, str] = {}
    jstack: str | None = None


class DirectConsumeResult(WireValue, frozen=True, kw_only=True):
    """What came of a message consumed on demand (Java: ConsumeMessageDirectlyResult)."""

    order: bool = False
    auto_commit: bool = True
    consume_result: ConsumeResult | None = None
    remark: str | None = None
    spent_time_mills: int = 0
