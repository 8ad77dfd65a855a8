"""Consumer groups: create or change (200, 225, 353), delete (207), show (201, 352).

Also finds the group of a pull or pop: created with its first request, where that is allowed.
"""

from pocketmq.broker.core.names import group_fault
from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.broker.topics.requests import PAGE, known_version
from pocketmq.errors import AttributeRefused, ResponseCode, server_error
from pocketmq.model import GroupConfig
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.fastjson import loads
from pocketmq.protocol.json_values import decode_value
from pocketmq.protocol.requests import groups


def group_named(state: BrokerState, name: str) -> GroupConfig:
    """Return a group of a pull or pop. Raises `ServerError` with Java's code and words."""
    return state.groups.get(name) or _new_group(state, name)


def _new_group(state: BrokerState, name: str) -> GroupConfig:
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


def update(state: BrokerState, _: Connection, request: Command) -> Command:
    """Create a group, or replace its settings."""
    if not request.body:
        return request.reply(ResponseCode.SUCCESS)  # as in Java
    value = loads(request.body, "GroupConfig")
    if type(value) is dict and value.get("groupName") is None:
        value["groupName"] = ""
    return _update(state, request, [decode_value(value, GroupConfig)])


def update_several(state: BrokerState, _: Connection, request: Command) -> Command:
    """Create or replace groups, unless a name is invalid."""
    return _update(state, request, decode_body(request.body, groups.GroupConfigs).group_config_list)


def _update(state: BrokerState, request: Command, wanted: list[GroupConfig]) -> Command:
    for config in wanted:
        fault = group_fault(config.group_name)
        if fault is not None:
            return request.reply(ResponseCode.INVALID_PARAMETER, fault)
    try:
        for config in wanted:
            if state.groups.full and config.group_name not in state.groups:
                remark = "this broker has as many groups as it can have"
                return request.reply(ResponseCode.SYSTEM_ERROR, remark)
            state.groups.update(config, state.clock.now_ms())
    except AttributeRefused as refused:
        return request.reply(ResponseCode.SYSTEM_ERROR, refused.reason)
    finally:
        save_changes(state)
    return request.reply(ResponseCode.SUCCESS)


def delete(
    state: BrokerState,
    _: Connection,
    request: Command,
    header: groups.DeleteSubscriptionGroupRequest,
) -> Command:
    """Delete a group, and its offsets if requested; succeeds also for an unknown group."""
    state.groups.remove(header.group_name, state.clock.now_ms())
    if state.pops is not None:
        state.pops.forget(group=header.group_name)
    state.stats.forget_group(header.group_name)
    if header.deletes_offsets:
        state.offsets.remove_group(header.group_name)
    save_changes(state)
    return request.reply(ResponseCode.SUCCESS)


def get(
    state: BrokerState,
    _: Connection,
    request: Command,
    header: groups.GetSubscriptionGroupConfigRequest,
) -> Command:
    """Answer with a group's settings, creating it if groups are created automatically."""
    name = header.group
    auto_create, now_ms = state.config.auto_create_subscription_group, state.clock.now_ms()
    config = state.groups.find(name, auto_create=auto_create, now_ms=now_ms)
    if config is None:
        code = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        return request.reply(code, "No group in this broker")
    save_changes(state)
    return request.reply(ResponseCode.SUCCESS, None, None, encode_body(config))


def get_all(
    state: BrokerState,
    _: Connection,
    request: Command,
    header: groups.GetAllSubscriptionGroupRequest,
) -> Command:
    """Answer with the settings of all groups, or of a page if the caller names its start."""
    table = state.groups
    entries, forbidden = table.entries, table.forbidden.entries
    if (header.group_seq, header.data_version, header.max_group_num) != (None, None, None):
        count = PAGE if header.max_group_num is None else min(PAGE, header.max_group_num)
        version = known_version(header.data_version)
        entries = table.page(header.group_seq or 0, count, version)
        forbidden = {name: topics for name, topics in forbidden.items() if name in entries}
    body = groups.GroupTableBody(
        subscription_group_table=entries, forbidden_table=forbidden, data_version=table.version
    )
    total = groups.GetAllSubscriptionGroupResponse(total_group_num=len(table))
    return request.reply(ResponseCode.SUCCESS, None, total, encode_body(body))


def forbid(
    state: BrokerState, _: Connection, request: Command, header: groups.UpdateGroupForbiddenRequest
) -> Command:
    """Forbid a group to read a topic, allow it again, or just answer which it is."""
    group, topic = header.group, header.topic
    if header.readable is not None and group in state.groups and topic in state.topics:
        state.groups.allow_reading(
            group, topic, allowed=header.readable, now_ms=state.clock.now_ms()
        )
        save_changes(state)
    readable = state.groups.may_read(group, topic)
    body = encode_body(groups.GroupForbidden(group=group, topic=topic, readable=readable))
    return request.reply(ResponseCode.SUCCESS, "", None, body)


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: update_several,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: delete,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: get,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: get_all,
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: forbid,
}
