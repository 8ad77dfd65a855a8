"""Between brokers of one set: who is master, how far replicas are."""

from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64
from pocketmq.protocol.request import NoHeader, json_of, request
from tests.protocol.foreign.replica_bodies import EpochCache, SyncStateSet


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
