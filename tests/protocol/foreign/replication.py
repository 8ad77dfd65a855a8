"""Between brokers of one set: who is master, how far replicas are."""

from pocketmq.model import WireValue
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64
from pocketmq.protocol.request import NoHeader, json_of, request
from pocketmq.protocol.requests.nameserver import MemberGroup


class Epoch(WireValue, frozen=True, kw_only=True):
    """The part of a commit log written under one master (Java: EpochEntry)."""

    epoch: int = 0
    start_offset: int = 0
    end_offset: int = 2**63 - 1


class EpochCache(WireValue, frozen=True, kw_only=True):
    """Every epoch of a broker's commit log (Java: EpochEntryCache)."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: int = 0
    epoch_list: list[Epoch] = []
    max_offset: int = 0


class SyncStateSet(WireValue, frozen=True, kw_only=True):
    """The ids of the brokers that hold everything their master confirmed."""

    sync_state_set: list[int] = []
    sync_state_set_epoch: int = 0


class ElectedMaster(WireValue, frozen=True, kw_only=True):
    """A controller's answer about an election (Java: ElectMasterResponseBody)."""

    broker_member_group: MemberGroup | None = None
    sync_state_set: list[int] = []


class Replica(WireValue, frozen=True, kw_only=True):
    """One broker of a replicated set (Java: ReplicaIdentity)."""

    broker_name: str | None = None
    broker_id: int = 0
    broker_address: str | None = None
    alive: bool = False


class ReplicaSet(WireValue, frozen=True, kw_only=True):
    """Who is master, who follows closely and who does not (Java: ReplicasInfo)."""

    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    in_sync_replicas: list[Replica] = []
    not_in_sync_replicas: list[Replica] = []


class BrokerReplicas(WireValue, frozen=True, kw_only=True):
    """The replicated sets by broker name (Java: BrokerReplicasInfo)."""

    replicas_info_table: dict[str, ReplicaSet] = {}


class ExchangeHAInfoRequest(Header, frozen=True, kw_only=True):
    """Tells a broker about its master, or asks a master about itself if empty."""

    master_ha_address: str | None = None
    master_flush_offset: Int64 | None = None
    master_address: str | None = None


class ExchangeHAInfoResponse(Header, frozen=True, kw_only=True):
    """What a master says about itself."""

    master_ha_address: str | None = None
    master_flush_offset: Int64 | None = None
    master_address: str | None = None


class ResetMasterFlushOffsetRequest(Header, frozen=True, kw_only=True):
    """Tells a slave how far its new master had flushed."""

    master_flush_offset: Int64


class NotifyBrokerRoleChangedRequest(Header, frozen=True, kw_only=True):
    """Tells brokers of a master elected by the controller."""

    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    master_broker_id: Int64 | None = None


EXCHANGE_BROKER_HA_INFO = request(
    Code.EXCHANGE_BROKER_HA_INFO, ExchangeHAInfoRequest, ExchangeHAInfoResponse
)
RESET_MASTER_FLUSH_OFFSET = request(
    Code.RESET_MASTER_FLUSH_OFFSET, ResetMasterFlushOffsetRequest, NoHeader
)
GET_BROKER_EPOCH_CACHE = request(
    Code.GET_BROKER_EPOCH_CACHE, NoHeader, NoHeader, result=json_of(EpochCache)
)
NOTIFY_BROKER_ROLE_CHANGED = request(
    Code.NOTIFY_BROKER_ROLE_CHANGED,
    NotifyBrokerRoleChangedRequest,
    NoHeader,
    body=json_of(SyncStateSet),
)
