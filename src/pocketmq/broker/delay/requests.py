"""How far delayed messages have been delivered (45), for tools and slaves."""

from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import encode_body


def get_offsets(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give the next offset of every level that was ever used."""
    body = encode_body(state.delay_progress.table(), bare_integer_keys=True)  # as fastjson does
    return request.reply(ResponseCode.SUCCESS, None, None, body)


HANDLERS: dict[RequestCode, Handler] = {RequestCode.GET_ALL_DELAY_OFFSET: get_offsets}
