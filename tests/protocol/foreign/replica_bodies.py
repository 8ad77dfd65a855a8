"""Masters, slaves and the controller (5.x). PocketMQ reads these; it replicates nothing itself."""

from pocketmq.model import WireValue
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
