"""The broker itself: its settings (25, 26) and how it does (28)."""

from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol.bodies.cluster import KVTable
from pocketmq.protocol.bodies.properties_text import read_properties, write_properties
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.headers.broker_admin import GetBrokerConfigResponse
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.peers import CURRENT_VERSION, version_name

_GUARDED = "configBlackList"


def update_config(state: BrokerState, _: Connection, request: Command) -> Command:
    """Change settings at run time; keys nobody knows change nothing, as in Java."""
    wanted = read_properties(request.body) if request.body else {}
    if _GUARDED in wanted:
        return request.reply(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    state.config = state.config.updated(wanted)
    state.targets.clear()
    return request.reply(ResponseCode.SUCCESS)


def get_config(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give every setting as text."""
    version = encode_body(state.topics.version).decode()
    body = write_properties(state.config.shown_properties())
    return request.reply(ResponseCode.SUCCESS, None, GetBrokerConfigResponse(version=version), body)


def runtime_info(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give what `mqadmin clusterList` and `brokerStatus` show."""
    return request.reply(ResponseCode.SUCCESS, body=encode_body(KVTable(table=figures(state))))


def figures(state: BrokerState) -> dict[str, str]:
    """Give the broker's figures by Java's names; every value is text."""
    traffic, rates = state.traffic, state.traffic.rates()
    total = tuple(a + b for a, b in zip(rates["found"], rates["missed"], strict=True))
    transferred = _three(rates["out"])
    size = traffic.bytes_in / traffic.messages_in if traffic.messages_in else 0.0
    idle = {
        f"{pool}ThreadPoolQueue{what}": "0"
        for pool in ("send", "pull", "query", "litePull", "ack")
        for what in ("Size", "HeadWaitTimeMills")
    }
    return idle | {
        "bootTimestamp": str(state.booted_ms),
        "runtime": _span(state.clock.now_ms() - state.booted_ms),
        "brokerVersionDesc": version_name(CURRENT_VERSION),
        "brokerVersion": str(CURRENT_VERSION),
        "brokerActive": "true",
        "putMessageTimesTotal": str(traffic.messages_in),
        "putMessageFailedTimes": str(traffic.refused),
        "putMessageSizeTotal": str(traffic.bytes_in),
        "putMessageAverageSize": str(size),
        "msgPutTotalTodayNow": str(traffic.messages_in),
        "msgGetTotalTodayNow": str(traffic.messages_out),
        "putTps": _three(rates["in"]),
        "getFoundTps": _three(rates["found"]),
        "getMissTps": _three(rates["missed"]),
        "getTotalTps": _three(total),
        "getTransferredTps": transferred,
        "getTransferedTps": transferred,  # as 4.9 spells it; its tools fail without
        "pageCacheLockTimeMills": "0",
        "commitLogMaxOffset": str(state.store.log.tail),
        "startAcceptSendRequestTimeStamp": "0",
    }


def _three(rates: tuple[float, ...]) -> str:
    return " ".join(str(rate) for rate in rates)


def _span(milliseconds: int) -> str:
    minutes, seconds = divmod(max(milliseconds, 0) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.UPDATE_BROKER_CONFIG: update_config,
    RequestCode.GET_BROKER_CONFIG: get_config,
    RequestCode.GET_BROKER_RUNTIME_INFO: runtime_info,
}
