"""Consumer groups: who is in them, how they are set up, what they subscribe."""

from pocketmq.model.data_version import DataVersion
from pocketmq.model.group_config import GroupConfig
from pocketmq.model.subscription import Subscription
from pocketmq.model.value import WireValue


class ConsumerIds(WireValue, frozen=True, kw_only=True):
    """The members of a group (Java: GetConsumerListByGroupResponseBody)."""

    consumer_id_list: list[str] = []


class GroupNames(WireValue, frozen=True, kw_only=True):
    """The groups that consume a topic (Java: GroupList)."""

    group_list: list[str] = []


class GroupTable(WireValue, frozen=True, kw_only=True):
    """Every group's set-up on a broker (Java: SubscriptionGroupWrapper).

    `forbidden_table` holds, per group and topic, the bits of what is switched off (5.x).
    """

    subscription_group_table: dict[str, GroupConfig] = {}
    forbidden_table: dict[str, dict[str, int]] = {}
    data_version: DataVersion = DataVersion()


class GroupConfigs(WireValue, frozen=True, kw_only=True):
    """Several groups to create or change at once (Java: SubscriptionGroupList)."""

    group_config_list: list[GroupConfig] = []


class GroupForbidden(WireValue, frozen=True, kw_only=True):
    """Whether a group may read a topic (5.x)."""

    topic: str | None = None
    group: str | None = None
    readable: bool | None = None


class GroupSubscription(WireValue, frozen=True, kw_only=True):
    """What a group subscribes of a topic (Java: QuerySubscriptionResponseBody)."""

    subscription_data: Subscription | None = None
    group: str | None = None
    topic: str | None = None


class ConsumedBy(WireValue, frozen=True, kw_only=True):
    """Which groups have consumed a message and which not yet (Java: ConsumeByWho)."""

    consumed_group: list[str] = []
    not_consumed_group: list[str] = []
    topic: str | None = None
    queue_id: int = 0
    offset: int = 0
