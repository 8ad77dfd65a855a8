"""Masters, slaves and the controller (5.x). PocketMQ reads these; it replicates nothing itself."""

from pocketmq.model.value import WireValue


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
