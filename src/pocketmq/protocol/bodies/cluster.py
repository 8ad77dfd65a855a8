"""What a name server knows of a cluster beyond single topics."""

from pocketmq.model.route import BrokerData
from pocketmq.model.value import WireValue


class ClusterInfo(WireValue, frozen=True, kw_only=True):
    """Every broker, and which cluster has which. Java writes broker ids as bare keys."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}


class KVTable(WireValue, frozen=True, kw_only=True):
    """Names and values: configuration of a name server, or a broker's runtime figures."""

    table: dict[str, str] = {}


class MemberGroup(WireValue, frozen=True, kw_only=True):
    """The brokers that share one name (Java: BrokerMemberGroup)."""

    cluster: str | None = None
    broker_name: str | None = None
    broker_addrs: dict[int, str] = {}


class MemberGroupAnswer(WireValue, frozen=True, kw_only=True):
    """A name server's answer about one broker name (Java: GetBrokerMemberGroupResponseBody)."""

    broker_member_group: MemberGroup | None = None
