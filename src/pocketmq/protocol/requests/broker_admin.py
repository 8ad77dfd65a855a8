"""Running brokers: settings, containers of brokers, store internals."""

from msgspec import field

from pocketmq.protocol.header import Header, Int32, Int64


class GetBrokerConfigResponse(Header, frozen=True, kw_only=True):
    """The version of the settings, which are the body."""

    version: str


class AddBrokerRequest(Header, frozen=True, kw_only=True):
    """Starts a broker inside a container."""

    config_path: str | None = None


class RemoveBrokerRequest(Header, frozen=True, kw_only=True):
    """Stops a broker inside a container."""

    broker_name: str
    broker_cluster_name: str
    broker_id: Int64


class CheckRocksdbCqWriteProgressRequest(Header, frozen=True, kw_only=True):
    """Compares a topic's queues in files with those in RocksDB."""

    topic: str
    check_store_time: Int64 = 0


class ExportRocksdbConfigRequest(Header, frozen=True, kw_only=True):
    """Has settings kept in RocksDB written as JSON files."""

    config_type: str  # topics, subscriptionGroups, consumerOffsets, joined by `;`


class SetCommitLogReadModeRequest(Header, frozen=True, kw_only=True):
    """Sets how the operating system reads ahead in the commit log; Java has no class for it."""

    read_ahead_mode: Int32 = field(name="READ_AHEAD_MODE")  # 0 normal, 1 random


class SwitchTimerEngineRequest(Header, frozen=True, kw_only=True):
    """Chooses what keeps delayed messages (5.5); Java has no class for it."""

    engine: str = field(name="E_T")  # F: files, R: RocksDB
