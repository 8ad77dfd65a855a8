"""Requests of operators: the name server's settings, and its key-value store.

Changing settings is rare, so their reader is imported when it is needed.
"""

from collections.abc import Hashable

from pocketmq.errors import ResponseCode, server_error
from pocketmq.nameserver.state import SUCCESS, Handler, NameServerState
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.requests import key_values


def read(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return all settings, sorted, and where this name server listens and saves."""
    from pocketmq.protocol.config_text import write_properties

    shown = state.config.shown_properties() | state.place
    return request.reply(SUCCESS, body=write_properties(dict(sorted(shown.items()))))


def update(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Change settings: all of them or, if one is read-only or invalid, none."""
    from pocketmq.protocol.config_text import read_properties

    if request.body:
        properties = read_properties(request.body)
        state.config.check_updatable(properties)
        config = state.config.updated(properties)
        if state.save_properties is not None:
            state.save_properties(config.kept_properties())
        state.config = config
    return request.reply(SUCCESS)


def put(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Store a value; it is saved before the answer leaves."""
    header = request.header(key_values.PutKVConfigRequest)
    state.key_values.put(header.namespace, header.key, header.value)
    return request.reply(SUCCESS)


def get(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return a value; a namespace of its own shows the queues of departed brokers."""
    header = request.header(key_values.GetKVConfigRequest)
    value = state.key_values.get(header.namespace, header.key)
    if header.namespace == key_values.DEPARTED_NAMESPACE:
        value = state.table.departures.of(header.key, state.clock())
    if value is None:
        remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
        raise server_error(ResponseCode.QUERY_NOT_FOUND, remark)
    return request.reply(SUCCESS, ext=key_values.GetKVConfigResponse(value=value))


def delete(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Delete a value, if there is one."""
    header = request.header(key_values.DeleteKVConfigRequest)
    state.key_values.delete(header.namespace, header.key)
    return request.reply(SUCCESS)


def of_namespace(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return all values of a namespace."""
    namespace = request.header(key_values.GetKVListRequest).namespace
    if namespace == key_values.DEPARTED_NAMESPACE:
        table = key_values.KVTable(table=state.table.departures.all(state.clock()))
        return request.reply(SUCCESS, body=encode_body(table))
    body = state.key_values.encoded(namespace)
    if body is None:
        remark = f"No config item, Namespace: {namespace}"
        raise server_error(ResponseCode.QUERY_NOT_FOUND, remark)
    return request.reply(SUCCESS, body=body)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.GET_NAMESRV_CONFIG: read,
    RequestCode.UPDATE_NAMESRV_CONFIG: update,
    RequestCode.PUT_KV_CONFIG: put,
    RequestCode.GET_KV_CONFIG: get,
    RequestCode.DELETE_KV_CONFIG: delete,
    RequestCode.GET_KVLIST_BY_NAMESPACE: of_namespace,
}
