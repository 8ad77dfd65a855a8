"""The clients of a broker, as operators see them."""

import msgspec

from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType, MessageModel
from pocketmq.model.subscription import Subscription
from pocketmq.model.value import WireValue
from pocketmq.protocol.peers import Language


class ClientConnection(WireValue, frozen=True, kw_only=True):
    """One connected client (Java: Connection)."""

    client_id: str | None = None
    client_addr: str | None = None
    language: Language | None = None
    version: int = 0


class ConsumerConnections(WireValue, frozen=True, kw_only=True):
    """The members of a group with what they subscribe (Java: ConsumerConnection)."""

    connection_set: list[ClientConnection] = []
    subscription_table: dict[str, Subscription] = {}
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None


class ProducerConnections(WireValue, frozen=True, kw_only=True):
    """The members of a producer group (Java: ProducerConnection)."""

    connection_set: list[ClientConnection] = []


class ProducerInfo(WireValue, frozen=True, kw_only=True):
    """One producer, with the time of its last heartbeat in milliseconds."""

    client_id: str | None = None
    remote_ip: str | None = msgspec.field(name="remoteIP", default=None)
    language: Language | None = None
    version: int = 0
    last_update_timestamp: int = 0


class ProducerTable(WireValue, frozen=True, kw_only=True):
    """Every producer of a broker, by group (Java: ProducerTableInfo)."""

    data: dict[str, list[ProducerInfo]] = {}
