"""Static topics as tools create and move them (513), and requests for logical queues."""

from pocketmq.broker.pulling.requests import resume
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import Answer, AnyHandler, BrokerState, Handler
from pocketmq.broker.static_topics import offsets, pulls, sends
from pocketmq.broker.static_topics.logical import LogicalHandler, find_led
from pocketmq.broker.topics.requests import read_config, topic_refusal
from pocketmq.errors import MappingRefused, ResponseCode
from pocketmq.model.topics import TopicMappingDetail
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, decode_body
from pocketmq.protocol.header import read_int32

LOGICAL: dict[int, LogicalHandler] = {
    int(code): handler for each in (sends, pulls, offsets) for code, handler in each.LOGICAL.items()
}
"""Requests that name a queue, and are converted if that is a logical one."""
_SHORT = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


def rerouted(code: int, plain: Handler) -> Handler:
    """Return a handler that converts requests for logical queues; `plain` if there are none."""
    logical = LOGICAL.get(code)
    if logical is None:
        return plain
    choose = code in sends.LOGICAL
    topic_field, queue_field = ("b", "e") if code in _SHORT else ("topic", "queueId")

    def handle(state: BrokerState, connection: Connection, request: Command) -> Answer:
        ext = request.ext
        detail = state.mappings.get(ext.get(topic_field, ""))
        number = read_int32(ext.get(queue_field, ""))
        # A request from another broker says that it means the physical queue.
        if detail is None or number is None or ext.get("lo", "").lower() == "false":
            return plain(state, connection, request)
        queue = find_led(detail, number, choose=choose)
        if queue is None:
            return request.reply(
                ResponseCode.NOT_LEADER_FOR_QUEUE,
                f"{detail.topic}-{number} does not exit in request process of current broker "
                f"{detail.bname}",
            )
        return logical(state, connection, request, queue, plain)

    return handle


def create(state: BrokerState, _: Connection, request: Command) -> Command:
    """Create a static topic, or replace its mapping. Nothing changes if that is refused."""
    config = read_config(request)
    detail = decode_body(request.body, TopicMappingDetail)
    refusal = topic_refusal(state, config)
    if refusal is None and (detail.bname, detail.topic) != (
        state.config.broker_name,
        config.topic_name,
    ):
        refusal = f"the mapping is that of topic {detail.topic} on broker {detail.bname}"
    if refusal is not None:
        return request.reply(ResponseCode.INVALID_PARAMETER, refusal)
    topic, now_ms = config.topic_name, state.clock.now_ms()
    if topic not in state.mappings and state.mappings.full:
        return request.reply(ResponseCode.SYSTEM_ERROR, "this broker has too many static topics")
    force = request.ext.get("force", "").lower() == "true"
    try:
        state.mappings.update(topic, detail, now_ms, force=force)
    except MappingRefused as refused:
        return request.reply(ResponseCode.SYSTEM_ERROR, refused.reason)
    state.topics.put(topic, config, now_ms)  # also if it is as before: it must be announced
    save_changes(state)
    _wake(state, topic)
    return request.reply(ResponseCode.SUCCESS)


def _wake(state: BrokerState, topic: str) -> None:
    """Answer pulls that wait for messages: their queues may have moved."""
    for queue in state.waiting.queues():
        if queue.topic == topic:
            for held in state.waiting.take_queue(queue):
                resume(state, held)


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: create,
}
