"""The group that a member reads for: created with its first request, where that is allowed."""

from typing import TYPE_CHECKING

from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.saving import save_changes
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import GroupConfig

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState


def group_named(state: "BrokerState", name: str) -> GroupConfig:
    """Return a group of a pull or pop. Raises `ServerError` with Java's code and words."""
    return state.groups.get(name) or _new_group(state, name)


def _new_group(state: "BrokerState", name: str) -> GroupConfig:
    group = state.groups.find(
        name, auto_create=state.config.auto_create_subscription_group, now_ms=state.batch.now_ms
    )
    if group is None:
        raise server_error(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{name}] does not exist, {MORE_HELP}",
        )
    save_changes(state)
    return group
