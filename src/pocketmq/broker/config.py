"""A broker's settings, by RocketMQ's own keys, with Java's defaults unless a comment says why not.

Owns names, types and what may change while the broker runs. Times have the unit of RocketMQ's key,
mostly milliseconds.
"""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from pocketmq.broker.access.settings import AccessSettings
from pocketmq.broker.config_ranges import check_value, range_text
from pocketmq.errors import InvalidInput
from pocketmq.model import Permission
from pocketmq.model.names import TRACE_TOPIC
from pocketmq.model.secrets import HIDDEN
from pocketmq.net.handshake_settings import SECRET_KEYS
from pocketmq.store.retention import parse_hours


class BrokerConfig(AccessSettings, frozen=True, kw_only=True, rename="camel"):
    """The settings of a broker. Keys of RocketMQ that PocketMQ does not need are left out."""

    # Identity and addresses
    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    broker_id: int = 0
    broker_ip1: str = msgspec.field(name="brokerIP1", default="")  # "": the address it listens on
    bind_address: str = "0.0.0.0"  # noqa: S104 - as in Java
    listen_port: int = 10911
    fast_listen_enable: bool = False  # also listen on listenPort − 2, for vipChannelEnabled
    advertised_port: int = 0  # 0: the port it listens on
    namesrv_addr: str = ""
    region_id: str = "DefaultRegion"
    trace_on: bool = True
    broker_permission: int = int(Permission.READ | Permission.WRITE)
    broker_role: str = "ASYNC_MASTER"

    # Name servers
    register_name_server_period: int = 30_000
    register_broker_timeout_mills: int = 24_000
    force_register: bool = True
    compressed_register: bool = False
    enable_single_topic_register: bool = False

    # Topics and groups
    default_topic_queue_nums: int = 8
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = TRACE_TOPIC

    # Clients
    notify_consumer_ids_changed_enable: bool = True
    channel_expired_timeout: int = 120_000
    subscription_expired_timeout: int = 600_000
    flush_consumer_offset_interval: int = 5_000
    use_server_side_reset_offset: bool = True
    default_message_request_mode: str = "PULL"

    # Sending
    max_message_size: int = 4 * 1024 * 1024
    reject_transaction_message: bool = False
    store_reply_message_enable: bool = True
    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    timer_wheel_enable: bool = True
    timer_max_delay_sec: int = 3 * 24 * 3600
    recall_message_enable: bool = True  # Java: false; recalling should simply work
    transaction_time_out: int = 6_000
    transaction_check_max: int = 15
    transaction_check_interval: int = 30_000

    # Pulling
    lite_pull_message_enable: bool = True
    long_polling_enable: bool = True
    short_polling_time_mills: int = 1_000
    enable_property_filter: bool = True  # Java: false; SQL subscriptions should simply work
    max_transfer_count_on_message_in_memory: int = 32
    max_transfer_bytes_on_message_in_memory: int = 256 * 1024
    max_transfer_count_on_request: int = 8192  # for pulls that ask for more bytes than usual
    max_transfer_bytes_on_request: int = 8 * 1024 * 1024  # clients take frames up to 16 MiB
    max_suspended_pulls: int = 100_000
    max_suspended_pulls_of_connection: int = 20_000
    default_query_max_num: int = 32
    max_msgs_num_batch: int = 64

    # Overload
    broker_fast_failure_enable: bool = True
    wait_time_mills_in_send_queue: int = 3_000  # Java: 200; here as long as senders wait
    wait_time_mills_in_pull_queue: int = 5_000
    wait_time_mills_in_lite_pull_queue: int = 5_000
    wait_time_mills_in_heartbeat_queue: int = 31_000
    wait_time_mills_in_transaction_queue: int = 3_000
    wait_time_mills_in_ack_queue: int = 3_000
    wait_time_mills_in_admin_broker_queue: int = 5_000
    max_connection_memory: int = 128 * 1024 * 1024  # ours; see `pocketmq.net.budget`
    max_request_body_size: int = 2 * 1024 * 1024  # ours; of requests whose body is not a message

    # Popping
    revive_queue_num: int = 8
    enable_retry_topic_v2: bool = False
    retrieve_message_from_pop_retry_topic_v1: bool = True
    pop_response_return_actual_retry_topic: bool = False
    pop_from_retry_probability: int = 20  # percentage of pops that read the retry topic first
    pop_from_retry_probability_for_priority: int = 0  # of topics with message.type=PRIORITY
    priority_order_asc: bool = True  # a larger number is more urgent, 0 the least
    pop_polling_size: int = 1024  # pops of one topic, group and queue that may wait
    max_pop_polling_size: int = 100_000
    enable_pop_message_threshold: bool = True  # Java: false; bounds the memory
    pop_inflight_message_threshold: int = 100_000  # Java: 10 000; of one queue and group
    enable_pop_buffer_merge: bool = False
    pop_consumer_kv_service_enable: bool = msgspec.field(
        name="popConsumerKVServiceEnable", default=False
    )

    # Storage
    flush_disk_type: str = "ASYNC_FLUSH"
    sync_flush_timeout: int = 5_000
    max_unsynced_messages: int = 100_000  # beyond that, sends are refused with code 2
    max_unsynced_bytes: int = 64 * 1024 * 1024
    file_reserved_time: int = 72  # hours
    file_reserved_bytes: int = 0  # ours; 0: as the disk allows, or a quarter of the memory
    mapped_file_size_commit_log: int = 128 * 1024 * 1024  # Java: 1 GiB; a laptop's share
    delete_when: str = "04"  # hours of the day, joined by `;`
    disk_max_used_space_ratio: int = 75
    disk_space_clean_forcibly_ratio: int = 85
    disk_space_warning_level_ratio: int = 90
    # Metrics
    metrics_exporter_type: str = "DISABLE"  # PROM: Prometheus; OTEL: OpenTelemetry; OTLP_GRPC
    metrics_prom_exporter_host: str = "127.0.0.1"  # Java: brokerIP1
    metrics_prom_exporter_port: int = 5557
    metrics_grpc_exporter_target: str = ""
    metric_grpc_exporter_interval_in_mills: int = 60_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in _FIELDS:
            check_value(field.encode_name, getattr(self, field.name))
        parse_hours(self.delete_when)

    @property
    def sync_flush(self) -> bool:
        """Whether a message is acknowledged only once it is synced to the device."""
        return self.flush_disk_type == "SYNC_FLUSH"

    @property
    def delete_hours(self) -> tuple[int, ...]:
        """The hours of the day at which messages older than `fileReservedTime` are deleted."""
        return parse_hours(self.delete_when)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read `key=value` settings; unknown keys are ignored, as in Java.

        Raises `InvalidInput` for a value that does not fit its key.
        """
        return msgspec.structs.replace(cls(), **_read(properties))

    def updated(self, properties: Mapping[str, str]) -> Self:
        """Return the settings after a change at run time.

        As in Java, unknown keys change nothing. Raises `InvalidInput` for a value that does not
        fit its key, and for a change of a key that can only be set at startup.
        """
        changes = _read(properties)
        for name, value in changes.items():
            if name in _FIXED and value != getattr(self, name):
                key = next(key for key, known in _BY_KEY.items() if known == name)
                raise InvalidInput(f"{key} can only be set at startup")
        return msgspec.structs.replace(self, **changes)

    def to_properties(self) -> dict[str, str]:
        """Write every setting as Java writes it, sorted by key."""
        pairs = {field.encode_name: getattr(self, field.name) for field in _FIELDS}
        return {key: _write_value(pairs[key]) for key in sorted(pairs)}

    def shown_properties(self) -> dict[str, str]:
        """Write every setting with its secrets hidden."""
        properties = self.to_properties()
        return properties | {key: HIDDEN for key in SECRET_SETTINGS if properties[key]}

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.shown_properties().items())
        return f"BrokerConfig({shown})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return list(self.shown_properties().items())


_FIELDS = msgspec.structs.fields(BrokerConfig)
_BY_KEY = {field.encode_name: field.name for field in _FIELDS}
_KINDS = {field.encode_name: field.type for field in _FIELDS}
SECRET_SETTINGS = SECRET_KEYS | {
    "initAuthenticationUser",
    "innerClientAuthenticationCredentials",
    "nameServerCredentials",
}
"""Keys whose values are never shown."""
_FIXED = frozenset(field.name for field in msgspec.structs.fields(AccessSettings)) | frozenset(
    {
        "advertised_port",
        "bind_address",
        "broker_cluster_name",
        "broker_id",
        "broker_ip1",
        "broker_name",
        "broker_role",
        "fast_listen_enable",
        "listen_port",
        "mapped_file_size_commit_log",
        "max_connection_memory",
        "message_delay_level",
        "metric_grpc_exporter_interval_in_mills",
        "metrics_exporter_type",
        "metrics_grpc_exporter_target",
        "metrics_prom_exporter_host",
        "metrics_prom_exporter_port",
        "namesrv_addr",
        "region_id",
        "trace_on",
    }
)


CHANGEABLE = frozenset(key for key, name in _BY_KEY.items() if name not in _FIXED)
"""Keys that can be changed while a broker runs."""


def _read(properties: Mapping[str, str]) -> dict[str, Any]:
    return {
        _BY_KEY[key]: _read_value(key, text) for key, text in properties.items() if key in _BY_KEY
    }


def _read_value(key: str, text: str) -> Any:
    kind, text = _KINDS[key], text.strip()
    if kind is str:
        return text
    if kind is bool:
        if text.lower() not in {"true", "false"}:
            raise InvalidInput(f"{key} must be true or false, not {text[:40]!r}")
        return text.lower() == "true"
    if not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > 20:
        raise InvalidInput(f"{key} must be {range_text(key)}, not {text[:40]!r}")
    return int(text)


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
