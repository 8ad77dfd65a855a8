"""Requests of brokers: register, heartbeat, compare data versions, unregister."""

import logging
import zlib
from collections.abc import Hashable
from hashlib import blake2b

from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import DataVersion
from pocketmq.nameserver.key_values import ORDER_NAMESPACE
from pocketmq.nameserver.registrations import SILENCE, Announcement, BrokerKey, RegisteredTopics
from pocketmq.nameserver.state import SUCCESS, Handler, NameServerState
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.peers import VersionGate
from pocketmq.protocol.registration import Registration, decode_registration
from pocketmq.protocol.requests import nameserver

_log = logging.getLogger("pocketmq.nameserver")

_ZONE = "__ZONE_NAME"
_CRC_MASK = 0x7FFFFFFF
_ZLIB = b"\x78"


def register(state: NameServerState, connection: Hashable, request: Command) -> Command:
    """Register a broker with its topics."""
    header = request.header(nameserver.RegisterBrokerRequest)
    if header.body_crc32 != 0 and zlib.crc32(request.body) & _CRC_MASK != header.body_crc32:
        raise server_error(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    delete_absent = state.config.delete_topic_with_broker_registration
    digest = _digest(request, header)
    broker = _announcement(request, header)
    topics = None
    if delete_absent or not state.table.holds(broker, digest):
        registration = _read(request, header)
        topics = RegisteredTopics(table=registration.topics, digest=digest)
        if request.version >= VersionGate.REGISTER_BODY:
            broker = _announcement(request, header, tuple(registration.filter_server_list))
    rival = state.table.rival(broker)
    registered = state.table.register(
        broker,
        topics,
        connection,
        state.clock(),
        delete_absent=delete_absent,
        take_over=state.config.broker_take_over_enable,
    )
    if registered.first:
        _log.info(
            "broker registered: name=%s id=%s address=%s",
            broker.name, broker.broker_id, broker.address,
        )  # fmt: skip
    if rival is not None:
        _log.warning(
            "two brokers share name=%s id=%s: %s and %s; clients reach only one of them, "
            "give each its own brokerName",
            broker.name, broker.broker_id, rival, broker.address,
        )  # fmt: skip
    state.notify(registered.notify)
    body = b""
    if state.config.return_order_topic_config_to_broker:
        body = state.key_values.encoded(ORDER_NAMESPACE) or b""
    answer = nameserver.RegisterBrokerResponse(
        ha_server_addr=registered.master_ha_address, master_addr=registered.master_address
    )
    return request.reply(SUCCESS, ext=answer, body=body)


def _announcement(
    request: Command,
    header: nameserver.RegisterBrokerRequest,
    filter_servers: tuple[str, ...] | None = None,
) -> Announcement:
    timeout = header.heartbeat_timeout_millis
    return Announcement(
        cluster=header.cluster_name,
        name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_address=header.ha_server_addr,
        zone=request.ext.get(_ZONE),
        acting_master=header.enable_acting_master,
        silence=timeout / 1000 if timeout is not None and timeout > 0 else SILENCE,
        filter_servers=filter_servers,
    )


def _digest(request: Command, header: nameserver.RegisterBrokerRequest) -> bytes:
    """Return a digest of a body and of the fields that decide how it is read."""
    how = f"{request.version} {header.compressed}".encode()
    return blake2b(request.body, digest_size=16, salt=how[:16]).digest()


def _read(request: Command, header: nameserver.RegisterBrokerRequest) -> Registration:
    """Read a registration; a compressed one may not be marked as such.

    Brokers of 5.x with compressedRegister compress the body but clear the flag in the header, which
    no Java name server understands. JSON never begins like a zlib stream, so the body decides.
    """
    if not request.body:
        return Registration()
    compressed = header.compressed or request.body.startswith(_ZLIB)
    return decode_registration(request.body, compressed=compressed, version=request.version)


def unregister(state: NameServerState, connection: Hashable, request: Command) -> Command:
    """Remove a broker that leaves."""
    header = request.header(nameserver.UnregisterBrokerRequest)
    key = BrokerKey(header.cluster_name, header.broker_addr)
    if not state.config.broker_take_over_enable and not state.asked_by_super:
        state.table.check_departure(key, header.broker_name, connection, state.clock())
    departed = state.table.unregister(key, header.broker_name, header.broker_id)
    _log.info("broker unregistered: name=%s address=%s", header.broker_name, key.address)
    state.notify(departed.notify)
    return request.reply(SUCCESS)


def heartbeat(state: NameServerState, connection: Hashable, request: Command) -> Command:
    """Note that a broker is alive."""
    header = request.header(nameserver.BrokerHeartbeatRequest)
    key = BrokerKey(header.cluster_name, header.broker_addr)
    state.table.heard(key, connection, state.clock())
    return request.reply(SUCCESS)


def query_data_version(state: NameServerState, connection: Hashable, request: Command) -> Command:
    """Return whether a broker's topics have changed since it registered; counts as a heartbeat."""
    header = request.header(nameserver.QueryDataVersionRequest)
    version = decode_body(request.body, DataVersion) if request.body else None
    key = BrokerKey(header.cluster_name, header.broker_addr)
    answer = nameserver.QueryDataVersionResponse(changed=state.table.changed(key, version))
    state.table.heard(key, connection, state.clock())
    known = state.table.data_version(key)
    body = b"" if known is None else encode_body(known)
    return request.reply(SUCCESS, ext=answer, body=body)


def member_group(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return the addresses of all brokers of a name."""
    header = request.header(nameserver.GetBrokerMemberGroupRequest)
    known = state.table.brokers.get(header.broker_name)
    group = nameserver.MemberGroup(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        broker_addrs={} if known is None else dict(sorted(known.addresses.items())),
    )
    body = encode_body(
        nameserver.MemberGroupAnswer(broker_member_group=group), bare_integer_keys=True
    )
    return request.reply(SUCCESS, body=body)


def wipe_write_permission(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Make a broker's topics read-only, so that it can be emptied."""
    name = request.header(nameserver.WipeWritePermissionRequest).broker_name
    count = state.table.wipe_write_permission(name)
    return request.reply(
        SUCCESS, ext=nameserver.WipeWritePermissionResponse(wipe_topic_count=count)
    )


def add_write_permission(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Make a broker's topics writable again."""
    name = request.header(nameserver.AddWritePermissionRequest).broker_name
    count = state.table.add_write_permission(name)
    return request.reply(SUCCESS, ext=nameserver.AddWritePermissionResponse(add_topic_count=count))


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.REGISTER_BROKER: register,
    RequestCode.UNREGISTER_BROKER: unregister,
    RequestCode.BROKER_HEARTBEAT: heartbeat,
    RequestCode.QUERY_DATA_VERSION: query_data_version,
    RequestCode.GET_BROKER_MEMBER_GROUP: member_group,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: wipe_write_permission,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: add_write_permission,
}
