"""Assignment by the broker (400) and request modes (401, 402); queue locks (41, 42)."""

from pocketmq.broker.balancing.assignment import share
from pocketmq.broker.name_servers.routes import Queues
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import BodyMalformed, ResponseCode
from pocketmq.model import MessageModel, MessageQueue, MessageRequestMode
from pocketmq.model.names import is_retry_topic
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.requests import assignment


def query(state: BrokerState, connection: Connection, request: Command) -> Command | None:
    """Answer with a member's queues; the answer may have to wait for a name server."""
    wanted = decode_body(request.body, assignment.AssignmentQuery)
    answers: list[Command] = []
    waits = False

    def found(queues: Queues | None) -> None:
        answer = _answer(state, request, wanted, queues)
        if waits:
            connection.write(answer.encode())
        else:
            answers.append(answer)

    state.routes.find(wanted.topic, state.steady(), found)
    waits = True
    return answers[0] if answers else None


def _answer(
    state: BrokerState, request: Command, query: assignment.AssignmentQuery, queues: Queues | None
) -> Command:
    standard = MessageRequestMode[state.config.default_message_request_mode]
    mode = state.modes.mode(query.topic, query.consumer_group, standard)
    own = None if queues is None else _own(state, query, mode, queues)
    assignments = None
    if own is not None:
        assignments = [
            assignment.QueueAssignment(message_queue=queue, mode=mode.mode) for queue in own
        ]
    body = assignment.Assignments(message_queue_assignments=assignments)
    return request.reply(ResponseCode.SUCCESS, None, None, encode_body(body))


def _own(
    state: BrokerState,
    query: assignment.AssignmentQuery,
    mode: assignment.RequestMode,
    queues: Queues,
) -> list[MessageQueue] | None:
    if query.message_model is MessageModel.BROADCASTING:
        return list(queues)
    group = state.consumers.get(query.consumer_group)
    if group is None or query.message_model is not MessageModel.CLUSTERING:
        return None
    return share(mode, query.strategy_name, query.client_id, queues, group.client_ids())


def set_mode(state: BrokerState, _: Connection, request: Command) -> Command:
    """Set how a group gets a topic's messages."""
    mode = decode_body(request.body, assignment.RequestMode)
    topic, group = mode.topic, mode.consumer_group
    if topic is None or group is None:
        raise BodyMalformed("RequestMode", "lacks topic or consumerGroup")
    if is_retry_topic(topic):
        remark = "retry topic is not allowed to set mode"
        return request.reply(ResponseCode.NO_PERMISSION, remark)
    if topic not in state.topics:
        return request.reply(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    auto_create, now_ms = state.config.auto_create_subscription_group, state.clock.now_ms()
    if state.groups.find(group, auto_create=auto_create, now_ms=now_ms) is None:
        remark = "subscription group does not exist"
        return request.reply(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    state.modes.set(mode, topic, group)
    save_changes(state)
    return request.reply(ResponseCode.SUCCESS)


def list_modes(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with all request modes, as a slave copies them."""
    body = encode_body(assignment.RequestModes(message_request_mode_map=state.modes.entries))
    return request.reply(ResponseCode.SUCCESS, None, None, body)


def lock(state: BrokerState, _: Connection, request: Command) -> Command:
    """Lock queues for a member, or renew its locks; the answer names those it has."""
    wanted = decode_body(request.body, assignment.LockQueues)
    granted = state.locks.lock(
        wanted.consumer_group, wanted.client_id, wanted.mq_set, state.steady()
    )
    return request.reply(
        ResponseCode.SUCCESS, None, None, encode_body(assignment.LockedQueues(locked=granted))
    )


def unlock(state: BrokerState, _: Connection, request: Command) -> Command | None:
    """Release a member's locks; locks of other members stay."""
    given = decode_body(request.body, assignment.UnlockQueues)
    state.locks.unlock(given.consumer_group, given.client_id, given.mq_set)
    return request.reply(ResponseCode.SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.QUERY_ASSIGNMENT: query,
    RequestCode.SET_MESSAGE_REQUEST_MODE: set_mode,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: list_modes,
    RequestCode.LOCK_BATCH_MQ: lock,
    RequestCode.UNLOCK_BATCH_MQ: unlock,
}
