"""What a proxy accepts from its clients and asks of them; the defaults are Apache's."""

import msgspec


class ProxyAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What a proxy demands of its clients; the cluster's own set-up should be the same."""

    authenticate: bool = False
    authorize: bool = False


class ProxyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one proxy, by Apache's names where they have one. Times are seconds."""

    max_message_size: int = 4 * 1024 * 1024
    max_user_property_size: int = 16 * 1024
    user_property_max_num: int = 128
    max_message_group_size: int = 64
    max_delay_time: float = 86_400.0
    max_transaction_recovery: int = 3600
    default_invisible_time: float = 60.0
    """For messages that the proxy renews."""
    min_invisible_time_for_receive: float = 10.0
    max_invisible_time: float = 12 * 3600.0
    min_long_polling: float = 5.0
    max_long_polling: float = 20.0
    receive_batch_size: int = 32
    producer_max_attempts: int = 3
    producer_backoff_initial: float = 0.01
    producer_backoff_max: float = 1.0
    producer_backoff_multiplier: float = 2.0
    check_message_types: bool = True
    largest_request: int = 130 * 1024 * 1024
    """Bytes of one gRPC message."""
    largest_headers: int = 16 * 1024
    """Bytes of a call's metadata."""
    streams_per_connection: int = 1024
    """Calls that one connection may have open; Apache's proxy has no such limit. A consumer has a
    few for each topic and broker. gRPC clients let further calls wait; others are refused them."""
    telemetry_per_client: int = 16
    """Telemetry streams of one client id; Apache's clients open one for each address."""
    client_expiry: float = 120.0
    """Seconds without a heartbeat until a client counts as gone."""
    renew_ahead: float = 10.0
    renew_interval: float = 5.0
    renew_longest: float = 3 * 3600.0
    """How long after its delivery a message is renewed at most."""
    hidden_when_undelivered: float = 1.0
    """How long a message stays hidden that was popped but could not be delivered."""
