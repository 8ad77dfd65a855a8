"""Running brokers: settings, runtime figures, timers, store internals, replication.

PocketMQ replicates nothing; it reads what Apache's brokers report about it.
"""

import struct

from pocketmq.errors import BodyMalformed
from pocketmq.model import DataVersion, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.config_text import PROPERTIES_TEXT
from pocketmq.protocol.header import Header, Int64
from pocketmq.protocol.request import Form, NoHeader, RequestRight, json_of, request
from pocketmq.protocol.requests.key_values import KVTable


class StoreCheck(WireValue, frozen=True, kw_only=True):
    """What the check found: 0 fine, 1 different, 2 still running, 3 failed.

    (Java: CheckRocksdbCqWriteResult.)
    """

    check_result: str | None = None
    check_status: int = 0


class TimerMetric(WireValue, frozen=True, kw_only=True):
    """How many messages of a topic wait, as counted at a time in milliseconds."""

    count: int = 0
    time_stamp: int = 0


class TimerMetrics(WireValue, frozen=True, kw_only=True):
    """The waiting messages by topic (Java: TimerMetricsSerializeWrapper)."""

    timing_count: dict[str, TimerMetric] = {}
    data_version: DataVersion = DataVersion()


class TimerCheckpoint(WireValue, frozen=True, kw_only=True):
    """How far a broker's timer wheel has read and flushed."""

    last_read_time_ms: int = 0
    last_timer_log_flush_pos: int = 0
    last_timer_queue_offset: int = 0
    master_timer_queue_offset: int = 0
    data_version: DataVersion = DataVersion()


_POSITIONS = struct.Struct(">4q")
_VERSION = struct.Struct(">3q")


def decode_timer_checkpoint(data: bytes) -> TimerCheckpoint:
    """Read a checkpoint; early 5.x releases end before the version. Raises `BodyMalformed`."""
    if len(data) not in (_POSITIONS.size, _POSITIONS.size + _VERSION.size):
        raise BodyMalformed("TimerCheckpoint", f"it has {len(data)} bytes, not 32 or 56")
    read_time, flushed, queue_offset, master_offset = _POSITIONS.unpack_from(data)
    version = DataVersion()
    if len(data) > _POSITIONS.size:
        state, timestamp, counter = _VERSION.unpack_from(data, _POSITIONS.size)
        version = DataVersion(state_version=state, timestamp=timestamp, counter=counter)
    return TimerCheckpoint(
        last_read_time_ms=read_time,
        last_timer_log_flush_pos=flushed,
        last_timer_queue_offset=queue_offset,
        master_timer_queue_offset=master_offset,
        data_version=version,
    )


def encode_timer_checkpoint(checkpoint: TimerCheckpoint) -> bytes:
    """Write a checkpoint with its version."""
    version = checkpoint.data_version
    return _POSITIONS.pack(
        checkpoint.last_read_time_ms,
        checkpoint.last_timer_log_flush_pos,
        checkpoint.last_timer_queue_offset,
        checkpoint.master_timer_queue_offset,
    ) + _VERSION.pack(version.state_version, version.timestamp, version.counter)


TIMER_CHECKPOINT: Form[TimerCheckpoint] = Form(
    "timer checkpoint", encode_timer_checkpoint, decode_timer_checkpoint
)


class HAConnection(WireValue, frozen=True, kw_only=True):
    """A slave as its master sees it."""

    addr: str | None = None
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


class HAClient(WireValue, frozen=True, kw_only=True):
    """A master as its slave sees it."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0


class HAStatus(WireValue, frozen=True, kw_only=True):
    """How a broker's replication stands (Java: HARuntimeInfo)."""

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HAConnection] = []
    ha_client_runtime_info: HAClient | None = None


class GetBrokerConfigResponse(Header, frozen=True, kw_only=True):
    """The version of the settings, which are the body."""

    version: str


class CheckRocksdbCqWriteProgressRequest(Header, frozen=True, kw_only=True):
    """Compares a topic's queues in files with those in RocksDB."""

    topic: str
    check_store_time: Int64 = 0


UPDATE_BROKER_CONFIG = request(
    Code.UPDATE_BROKER_CONFIG,
    NoHeader,
    NoHeader,
    body=PROPERTIES_TEXT,
    right=RequestRight.on_cluster("Update"),
)
GET_BROKER_CONFIG = request(
    Code.GET_BROKER_CONFIG,
    NoHeader,
    GetBrokerConfigResponse,
    result=PROPERTIES_TEXT,
    right=RequestRight.on_cluster("Get"),
)
GET_BROKER_RUNTIME_INFO = request(
    Code.GET_BROKER_RUNTIME_INFO,
    NoHeader,
    NoHeader,
    result=json_of(KVTable),
    right=RequestRight.on_cluster("Get"),
)
GET_TIMER_CHECK_POINT = request(
    Code.GET_TIMER_CHECK_POINT,
    NoHeader,
    NoHeader,
    result=TIMER_CHECKPOINT,
    right=RequestRight.on_cluster("Get"),
)
GET_TIMER_METRICS = request(
    Code.GET_TIMER_METRICS,
    NoHeader,
    NoHeader,
    result=json_of(TimerMetrics),
    right=RequestRight.on_cluster("Get"),
)
CLEAN_EXPIRED_CONSUMEQUEUE = request(
    Code.CLEAN_EXPIRED_CONSUMEQUEUE, NoHeader, NoHeader, right=RequestRight.on_cluster("Update")
)
CLEAN_UNUSED_TOPIC = request(
    Code.CLEAN_UNUSED_TOPIC, NoHeader, NoHeader, right=RequestRight.on_cluster("Update")
)
DELETE_EXPIRED_COMMITLOG = request(
    Code.DELETE_EXPIRED_COMMITLOG, NoHeader, NoHeader, right=RequestRight.on_cluster("Update")
)
CHECK_ROCKSDB_CQ_WRITE_PROGRESS = request(
    Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
    CheckRocksdbCqWriteProgressRequest,
    NoHeader,
    result=json_of(StoreCheck),
    right=RequestRight.on_cluster("Get"),
)


class NotifyMinBrokerIdChangeRequest(Header, frozen=True, kw_only=True):
    """Notifies brokers of the one that now acts as master."""

    min_broker_id: Int64 | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


NOTIFY_MIN_BROKER_ID_CHANGE = request(
    Code.NOTIFY_MIN_BROKER_ID_CHANGE, NotifyMinBrokerIdChangeRequest, NoHeader
)
GET_BROKER_HA_STATUS = request(
    Code.GET_BROKER_HA_STATUS,
    NoHeader,
    NoHeader,
    result=json_of(HAStatus),
    right=RequestRight.on_cluster("Get"),
)
