"""Taking a timed message back before it is due (370), with Java's checks, codes and words."""

from pocketmq.broker.sending.born_host import born_host
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.writing.appending import place
from pocketmq.broker.writing.drafts import Draft
from pocketmq.errors import HeaderMalformed, ResponseCode, server_error
from pocketmq.model import properties as names
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import ONEWAY_FLAG, Command
from pocketmq.protocol.recall_handle import RecallHandle
from pocketmq.protocol.requests.sending import RecallRequest, RecallResponse

_TAG = "_RECALL_TAG_"


def recall(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Have a message not delivered; it is not looked whether there is one, as in RocketMQ."""
    header = request.header(RecallRequest)
    now_ms = state.turn.now_ms
    handle = _checked(state, header, now_ms)
    draft = Draft(
        topic=handle.topic,
        queue_id=0,
        body=b"0",
        properties={
            names.TAGS: _TAG,
            names.TIMER_DELETE_UNIQUE_KEY: f"{handle.topic}+{handle.message_id}",
            names.UNIQUE_KEY: handle.message_id,
            names.TIMER_DELIVER_MS: str(handle.deliver_at_ms),
            names.BORN_TIMESTAMP: str(now_ms),
            names.PRODUCER_GROUP: header.producer_group or "",
        },
        flag=0,
        sys_flag=0,
        born_timestamp_ms=now_ms,
        born_host=born_host(connection),
    )
    place(state, draft)
    if not request.flag & ONEWAY_FLAG:
        answer = RecallResponse(msg_id=handle.message_id, region=state.config.region_id)
        frame = request.reply(ResponseCode.SUCCESS, None, answer).encode()
        state.turn.answer_stored(connection, request, frame)
    return None


def _checked(state: BrokerState, header: RecallRequest, now_ms: int) -> RecallHandle:
    config = state.config
    if not config.recall_message_enable:
        raise server_error(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    if state.topics.get(header.topic) is None:
        raise server_error(
            ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{header.topic}] not exist"
        )
    try:
        handle = RecallHandle.parse(header.recall_handle)
    except HeaderMalformed as error:
        raise server_error(ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid") from error
    if handle.topic != header.topic:
        raise server_error(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
    if handle.broker_name != config.broker_name:
        raise server_error(
            ResponseCode.ILLEGAL_OPERATION, "recall failed, broker service not available"
        )
    left_ms = handle.deliver_at_ms - now_ms
    if not 0 < left_ms <= config.timer_max_delay_sec * 1000:
        raise server_error(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
    return handle


HANDLERS: dict[RequestCode, Handler] = {RequestCode.RECALL_MESSAGE: recall}
