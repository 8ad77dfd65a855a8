"""Between brokers of one set: who is master, how far replicas are."""

from pocketmq.protocol.header import Header, Int32, Int64


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


class NotifyMinBrokerIdChangeRequest(Header, frozen=True, kw_only=True):
    """Tells brokers which of them now stands in for the master."""

    min_broker_id: Int64 | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


class NotifyBrokerRoleChangedRequest(Header, frozen=True, kw_only=True):
    """Tells brokers of a master elected by the controller."""

    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    master_broker_id: Int64 | None = None
