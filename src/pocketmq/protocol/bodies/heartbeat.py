"""The heartbeat, and the check of one subscription before it."""

import msgspec

from pocketmq.model.members import ConsumerData, ProducerData
from pocketmq.model.subscription import Subscription
from pocketmq.model.value import WireValue


class Heartbeat(WireValue, frozen=True, kw_only=True):
    """Everything a client is to a broker (Java: HeartbeatData).

    The last two fields are version 2 of the heartbeat (5.x): a body `without_sub` only says that a
    client whose full heartbeat had this fingerprint is alive.
    """

    client_id: str = msgspec.field(name="clientID")
    producer_data_set: list[ProducerData] = []
    consumer_data_set: list[ConsumerData] = []
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


class ClientCheck(WireValue, frozen=True, kw_only=True):
    """A subscription a broker is asked to accept (Java: CheckClientRequestBody)."""

    client_id: str | None = None
    group: str | None = None
    namespace: str | None = None
    subscription_data: Subscription | None = None
