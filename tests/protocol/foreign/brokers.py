"""Containers of brokers, RocksDB, cold data, and the filter servers that 4.9 still names."""

from typing import Any

from msgspec import field

from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.config_text import PROPERTIES_TEXT
from pocketmq.protocol.fastjson import dumps, loads
from pocketmq.protocol.header import Header, Int32, Int64
from pocketmq.protocol.peers import NOBODY
from pocketmq.protocol.request import RAW, Form, NoHeader, request

TEXT: Form[str] = Form("text", str.encode, bytes.decode)
ANY_JSON: Form[Any] = Form("json", dumps, loads)


class AddBrokerRequest(Header, frozen=True, kw_only=True):
    """Starts a broker inside a container."""

    config_path: str | None = None


class RemoveBrokerRequest(Header, frozen=True, kw_only=True):
    """Stops a broker inside a container."""

    broker_name: str
    broker_cluster_name: str
    broker_id: Int64


class ExportRocksdbConfigRequest(Header, frozen=True, kw_only=True):
    """Has settings kept in RocksDB written as JSON files."""

    config_type: str  # topics, subscriptionGroups, consumerOffsets, joined by `;`


class SetCommitLogReadModeRequest(Header, frozen=True, kw_only=True):
    """Sets how the operating system reads ahead in the commit log; Java has no class for it."""

    read_ahead_mode: Int32 = field(name="READ_AHEAD_MODE")  # 0 normal, 1 random


class SwitchTimerEngineRequest(Header, frozen=True, kw_only=True):
    """Chooses what keeps delayed messages (5.5); Java has no class for it."""

    engine: str = field(name="E_T")  # F: files, R: RocksDB


EXPORT_ROCKSDB_CONFIG_TO_JSON = request(
    Code.EXPORT_ROCKSDB_CONFIG_TO_JSON, ExportRocksdbConfigRequest, NoHeader
)
ADD_BROKER = request(Code.ADD_BROKER, AddBrokerRequest, NoHeader)
REMOVE_BROKER = request(Code.REMOVE_BROKER, RemoveBrokerRequest, NoHeader)
UPDATE_COLD_DATA_FLOW_CTR_CONFIG = request(
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, NoHeader, NoHeader, body=PROPERTIES_TEXT
)
REMOVE_COLD_DATA_FLOW_CTR_CONFIG = request(
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, NoHeader, NoHeader, body=TEXT
)
GET_COLD_DATA_FLOW_CTR_INFO = request(
    Code.GET_COLD_DATA_FLOW_CTR_INFO, NoHeader, NoHeader, result=ANY_JSON
)
SET_COMMITLOG_READ_MODE = request(
    Code.SET_COMMITLOG_READ_MODE, SetCommitLogReadModeRequest, NoHeader
)
SWITCH_TIMER_ENGINE = request(Code.SWITCH_TIMER_ENGINE, SwitchTimerEngineRequest, NoHeader)


class RegisterFilterServerRequest(Header, frozen=True, kw_only=True):
    """Registers a filter server with its broker."""

    filter_server_addr: str


class RegisterFilterServerResponse(Header, frozen=True, kw_only=True):
    """The broker a filter server belongs to."""

    broker_name: str
    broker_id: Int64


class RegisterMessageFilterClassRequest(Header, frozen=True, kw_only=True):
    """Sends a filter class to a filter server; its source is the body."""

    consumer_group: str
    topic: str
    class_name: str
    class_crc: Int32 = field(name="classCRC")


REGISTER_FILTER_SERVER = request(
    Code.REGISTER_FILTER_SERVER,
    RegisterFilterServerRequest,
    RegisterFilterServerResponse,
    served_by=NOBODY,
)
REGISTER_MESSAGE_FILTER_CLASS = request(
    Code.REGISTER_MESSAGE_FILTER_CLASS,
    RegisterMessageFilterClassRequest,
    NoHeader,
    body=RAW,
    served_by=NOBODY,
)
