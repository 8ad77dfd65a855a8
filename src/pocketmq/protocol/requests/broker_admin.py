"""Running brokers: settings, containers of brokers, store internals."""

from pocketmq.protocol.bodies.cluster import KVTable
from pocketmq.protocol.bodies.properties_text import PROPERTIES_TEXT
from pocketmq.protocol.bodies.store_check import StoreCheck
from pocketmq.protocol.bodies.timer import TIMER_CHECKPOINT, TimerMetrics
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.header import Header, Int64
from pocketmq.protocol.request import NoHeader, request


class GetBrokerConfigResponse(Header, frozen=True, kw_only=True):
    """The version of the settings, which are the body."""

    version: str


class CheckRocksdbCqWriteProgressRequest(Header, frozen=True, kw_only=True):
    """Compares a topic's queues in files with those in RocksDB."""

    topic: str
    check_store_time: Int64 = 0


UPDATE_BROKER_CONFIG = request(Code.UPDATE_BROKER_CONFIG, NoHeader, NoHeader, body=PROPERTIES_TEXT)
GET_BROKER_CONFIG = request(
    Code.GET_BROKER_CONFIG, NoHeader, GetBrokerConfigResponse, result=PROPERTIES_TEXT
)
GET_BROKER_RUNTIME_INFO = request(
    Code.GET_BROKER_RUNTIME_INFO, NoHeader, NoHeader, result=json_of(KVTable)
)
GET_TIMER_CHECK_POINT = request(
    Code.GET_TIMER_CHECK_POINT, NoHeader, NoHeader, result=TIMER_CHECKPOINT
)
GET_TIMER_METRICS = request(
    Code.GET_TIMER_METRICS, NoHeader, NoHeader, result=json_of(TimerMetrics)
)
CLEAN_EXPIRED_CONSUMEQUEUE = request(Code.CLEAN_EXPIRED_CONSUMEQUEUE, NoHeader, NoHeader)
CLEAN_UNUSED_TOPIC = request(Code.CLEAN_UNUSED_TOPIC, NoHeader, NoHeader)
DELETE_EXPIRED_COMMITLOG = request(Code.DELETE_EXPIRED_COMMITLOG, NoHeader, NoHeader)
CHECK_ROCKSDB_CQ_WRITE_PROGRESS = request(
    Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
    CheckRocksdbCqWriteProgressRequest,
    NoHeader,
    result=json_of(StoreCheck),
)
