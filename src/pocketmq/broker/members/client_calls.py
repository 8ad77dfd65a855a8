"""Requests relayed to clients: running info, consume directly, offsets in memory (223, 307, 309).

Owns Java's words for clients that are gone, too old or silent. A client that never answers costs
the caller an answer with code 207, never the broker anything.
"""

from collections.abc import Callable

import msgspec

from pocketmq import errors
from pocketmq.broker.core.peer import ClientPeer
from pocketmq.broker.core.refusals import too_old
from pocketmq.broker.state import Answer, AnyHandler, BrokerState
from pocketmq.model import MessageQueue
from pocketmq.net import Connection
from pocketmq.protocol import ONEWAY_FLAG, Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.peers import VersionGate, version_name
from pocketmq.protocol.requests import client_calls, offsets
from pocketmq.protocol.signature import unsigned

CALL_TIMEOUT = 10.0
STATUS_TIMEOUT = 5.0

Answered = Callable[[Command | errors.TransportError], None]


class _Sink:
    """Takes the answer of a client, or why there is none."""

    __slots__ = ("_answered",)

    def __init__(self, answered: Answered) -> None:
        self._answered = answered

    def done(self) -> bool:
        return False

    def set_result(self, result: Command) -> None:
        self._answered(result)

    def set_exception(self, exception: errors.TransportError) -> None:
        self._answered(exception)


def _ask(client: ClientPeer, request: Command, timeout: float, answered: Answered) -> None:
    assert isinstance(client, Connection)
    try:
        opaque = client.expect_into(_Sink(answered), request.code, timeout)
    except errors.TransportError as error:
        answered(error)
        return
    client.post(opaque, msgspec.structs.replace(request, opaque=opaque).encode())


def running_info(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: client_calls.GetConsumerRunningInfoRequest,
) -> Answer:
    """Relay a request for a consumer's running info, with its threads' stacks if requested."""
    passed_on = Command.request(request.code, 0, unsigned(request.ext), request.body)
    _relay(state, connection, request, passed_on, (header.consumer_group, header.client_id))
    return None


def consume_directly(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: client_calls.ConsumeDirectlyRequest,
) -> Answer:
    """Ask a consumer to handle one message of the log now."""
    try:
        position = parse_offset_id(header.msg_id or "").commit_log_offset
    except errors.InvalidInput as error:
        raise errors.server_error(errors.ResponseCode.SYSTEM_ERROR, str(error)) from error
    record = state.store.record_at(position)
    if record is None:
        remark = f"can not find message by the offset, {position}"
        raise errors.server_error(errors.ResponseCode.SYSTEM_ERROR, remark)
    ext = unsigned(request.ext) | {"brokerName": state.config.broker_name}
    topic, group = state.topics.get(header.topic or ""), state.groups.get(header.consumer_group)
    if topic is not None:
        ext["topicSysFlag"] = str(topic.topic_sys_flag)
    if group is not None:
        ext["groupSysFlag"] = str(group.group_sys_flag)
    passed_on = Command.request(request.code, 0, ext, record)
    _relay(state, connection, request, passed_on, (header.consumer_group, header.client_id or ""))
    return None


def _relay(
    state: BrokerState,
    connection: Connection,
    request: Command,
    passed_on: Command,
    member: tuple[str, str],
) -> None:
    """Pass a request on to a member of a group and its answer back, both as they are."""
    group, client_id = member
    known = state.consumers.get(group)
    client = None if known is None else known.find(client_id)
    if known is None or client is None:
        remark = f"The Consumer <{group}> <{client_id}> not online"
        raise errors.server_error(errors.ResponseCode.SYSTEM_ERROR, remark)
    version = known.members[client].client.version
    if version < VersionGate.RELAYED_CALLS:
        remark = (
            f"The Consumer <{client_id}> Version <{version_name(version)}> too low to finish, "
            "please upgrade it to V3_1_8_SNAPSHOT"
        )
        raise errors.server_error(errors.ResponseCode.SYSTEM_ERROR, remark)

    def answered(result: Command | errors.TransportError) -> None:
        if isinstance(result, errors.RequestTimedOut):
            remark = f"consumer <{group}> <{client_id}> Timeout: {result}"
            answer = request.reply(errors.ResponseCode.CONSUME_MSG_TIMEOUT, remark)
        elif isinstance(result, errors.TransportError):
            remark = f"invoke consumer <{group}> <{client_id}> Exception: {result}"
            answer = request.reply(errors.ResponseCode.SYSTEM_ERROR, remark)
        else:
            answer = request.reply(result.code, result.remark, result.ext, result.body)
        if not request.flag & ONEWAY_FLAG:
            connection.write(answer.encode())

    _ask(client, passed_on, CALL_TIMEOUT, answered)


def consumer_status(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: client_calls.GetConsumerStatusRequest,
) -> Answer:
    """Gather the offsets that a group's clients hold in memory, of all of them or of one."""
    known = state.consumers.get(header.group)
    if known is None:
        remark = f"No Any Consumer online in the consumer group: [{header.group}]"
        raise errors.server_error(errors.ResponseCode.SYSTEM_ERROR, remark)
    wanted = (header.client_addr or "").strip()  # Java's name for it; it is the client's id
    asked: dict[ClientPeer, str] = {}
    for client, member in known.members.items():
        if member.client.version < VersionGate.RESET_OFFSET_PUSH:
            raise errors.server_error(
                errors.ResponseCode.SYSTEM_ERROR, too_old(member.client.version)
            )
        if not wanted or member.client.client_id == wanted:
            asked[client] = member.client.client_id
    gathering = _Gathering(connection, request, len(asked))
    question = client_calls.GetConsumerStatusRequest(topic=header.topic, group=header.group)
    passed_on = Command.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, 0, question)
    for client, client_id in asked.items():
        _ask(client, passed_on, STATUS_TIMEOUT, gathering.part(client_id))
    return gathering.answer() if not asked else None


class _Gathering:
    """The answers of several clients, sent to the caller when the last one is there."""

    def __init__(self, connection: Connection, request: Command, missing: int) -> None:
        self._connection = connection
        self._request = request
        self._missing = missing
        self._table: dict[str, dict[MessageQueue, int]] = {}

    def part(self, client_id: str) -> Answered:
        """Return a callback for one client's answer; a malformed one is left out, as in Java."""

        def answered(result: Command | errors.TransportError) -> None:
            self._missing -= 1
            if (
                isinstance(result, Command)
                and result.code == errors.ResponseCode.SUCCESS
                and result.body
            ):
                try:
                    status = decode_body(result.body, offsets.ConsumerStatus)
                except errors.BodyMalformed:
                    pass
                else:
                    self._table[client_id] = status.message_queue_table
            if not self._missing:
                self._connection.write(self.answer().encode())

        return answered

    def answer(self) -> Command:
        """Return the answer with all that was gathered."""
        body = encode_body(offsets.ConsumerStatus(consumer_table=self._table))
        return self._request.reply(errors.ResponseCode.SUCCESS, body=body)


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.GET_CONSUMER_RUNNING_INFO: running_info,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: consume_directly,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: consumer_status,
}
