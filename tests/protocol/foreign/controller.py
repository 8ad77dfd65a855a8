"""The controller, which elects masters (5.x)."""

from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.config_text import PROPERTIES_TEXT
from pocketmq.protocol.header import Header, Int32, Int64
from pocketmq.protocol.peers import CONTROLLER
from pocketmq.protocol.request import NoHeader, json_of, request
from tests.protocol.foreign.replication import BrokerReplicas, ElectedMaster, SyncStateSet


class AlterSyncStateSetRequest(Header, frozen=True, kw_only=True):
    """Reports which replicas keep up with their master; they are the body."""

    broker_name: str | None = None
    master_broker_id: Int64 | None = None
    master_epoch: Int32 | None = None
    invoke_time: Int64 | None = None  # when the caller decided; absent: now


class AlterSyncStateSetResponse(Header, frozen=True, kw_only=True):
    """The number of the new set."""

    new_sync_state_set_epoch: Int32 = 0


class ElectMasterRequest(Header, frozen=True, kw_only=True):
    """Has a master elected, or one broker made master."""

    cluster_name: str
    broker_name: str
    broker_id: Int64  # -1: any
    designate_elect: bool
    invoke_time: Int64 | None = None  # when the caller decided; absent: now


class ElectMasterResponse(Header, frozen=True, kw_only=True):
    """The master that was elected."""

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class GetReplicaInfoRequest(Header, frozen=True, kw_only=True):
    """Asks who is master of a set of replicas."""

    broker_name: str | None = None


class GetReplicaInfoResponse(Header, frozen=True, kw_only=True):
    """The master; the replicas that keep up are the body."""

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None


class GetControllerMetadataResponse(Header, frozen=True, kw_only=True):
    """Who leads the controllers."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool = False
    peers: str | None = None


class GetNextBrokerIdRequest(Header, frozen=True, kw_only=True):
    """Asks for a broker id nobody has."""

    cluster_name: str | None = None
    broker_name: str | None = None


class GetNextBrokerIdResponse(Header, frozen=True, kw_only=True):
    """An id that is free."""

    cluster_name: str | None = None
    broker_name: str | None = None
    next_broker_id: Int64 | None = None


class ApplyBrokerIdRequest(Header, frozen=True, kw_only=True):
    """Takes a broker id."""

    cluster_name: str | None = None
    broker_name: str | None = None
    applied_broker_id: Int64 | None = None
    register_check_code: str | None = None


class ApplyBrokerIdResponse(Header, frozen=True, kw_only=True):
    """Says for which broker the id was taken."""

    cluster_name: str | None = None
    broker_name: str | None = None


class RegisterBrokerToControllerRequest(Header, frozen=True, kw_only=True):
    """Registers a broker under the id it took."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Int64 | None = None
    broker_address: str | None = None
    invoke_time: Int64 = 0


class RegisterBrokerToControllerResponse(Header, frozen=True, kw_only=True):
    """The master the broker will follow, perhaps itself."""

    cluster_name: str | None = None
    broker_name: str | None = None
    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class CleanBrokerDataRequest(Header, frozen=True, kw_only=True):
    """Makes the controller forget brokers."""

    cluster_name: str | None = None
    broker_name: str
    broker_controller_ids_to_clean: str | None = None  # joined by `;`; absent for all
    is_clean_living_broker: bool = False
    invoke_time: Int64 | None = None  # when the caller decided; absent: now


CONTROLLER_ALTER_SYNC_STATE_SET = request(
    Code.CONTROLLER_ALTER_SYNC_STATE_SET,
    AlterSyncStateSetRequest,
    AlterSyncStateSetResponse,
    body=json_of(SyncStateSet),
    result=json_of(SyncStateSet),
    served_by=CONTROLLER,
)
CONTROLLER_ELECT_MASTER = request(
    Code.CONTROLLER_ELECT_MASTER,
    ElectMasterRequest,
    ElectMasterResponse,
    result=json_of(ElectedMaster),
    served_by=CONTROLLER,
)
CONTROLLER_REGISTER_BROKER = request(
    Code.CONTROLLER_REGISTER_BROKER,
    RegisterBrokerToControllerRequest,
    RegisterBrokerToControllerResponse,
    result=json_of(SyncStateSet),
    served_by=CONTROLLER,
)
CONTROLLER_GET_REPLICA_INFO = request(
    Code.CONTROLLER_GET_REPLICA_INFO,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    result=json_of(SyncStateSet),
    served_by=CONTROLLER,
)
CONTROLLER_GET_METADATA_INFO = request(
    Code.CONTROLLER_GET_METADATA_INFO, NoHeader, GetControllerMetadataResponse, served_by=CONTROLLER
)
CONTROLLER_GET_SYNC_STATE_DATA = request(
    Code.CONTROLLER_GET_SYNC_STATE_DATA,
    NoHeader,
    NoHeader,
    body=json_of(list[str]),
    result=json_of(BrokerReplicas),
    served_by=CONTROLLER,
)
UPDATE_CONTROLLER_CONFIG = request(
    Code.UPDATE_CONTROLLER_CONFIG, NoHeader, NoHeader, body=PROPERTIES_TEXT, served_by=CONTROLLER
)
GET_CONTROLLER_CONFIG = request(
    Code.GET_CONTROLLER_CONFIG, NoHeader, NoHeader, result=PROPERTIES_TEXT, served_by=CONTROLLER
)
CLEAN_BROKER_DATA = request(
    Code.CLEAN_BROKER_DATA, CleanBrokerDataRequest, NoHeader, served_by=CONTROLLER
)
CONTROLLER_GET_NEXT_BROKER_ID = request(
    Code.CONTROLLER_GET_NEXT_BROKER_ID,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    served_by=CONTROLLER,
)
CONTROLLER_APPLY_BROKER_ID = request(
    Code.CONTROLLER_APPLY_BROKER_ID,
    ApplyBrokerIdRequest,
    ApplyBrokerIdResponse,
    served_by=CONTROLLER,
)
