"""Requests for what this broker lacks: replicas, a controller, RocksDB, cold data, lite topics.

Refused with Java's code for an unknown request, and the reason. Where a
single broker has an answer (it is the master, it has no slaves), it answers. A code
without any handler is refused in `dispatch`.
"""

from pocketmq.broker.core.refusals import NO_LITE_TOPICS
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command, encode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests.broker_admin import HAClient, HAStatus, StoreCheck

_COLD = "this broker does not tell cold data from other data"
_ALONE = "this broker has no replicas, it is the only one of its name"
_CONTROLLER = "there is no controller here"
_CONTAINER = "this broker does not run in a container of brokers"
_REASONS: dict[Code, str] = {
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    Code.GET_COLD_DATA_FLOW_CTR_INFO: _COLD,
    Code.SET_COMMITLOG_READ_MODE: "the operating system decides how this broker reads ahead",
    Code.EXCHANGE_BROKER_HA_INFO: _ALONE,
    Code.NOTIFY_BROKER_ROLE_CHANGED: _ALONE,
    Code.CONTROLLER_ALTER_SYNC_STATE_SET: _CONTROLLER,
    Code.CONTROLLER_ELECT_MASTER: _CONTROLLER,
    Code.CONTROLLER_REGISTER_BROKER: _CONTROLLER,
    Code.CONTROLLER_GET_REPLICA_INFO: _CONTROLLER,
    Code.CONTROLLER_GET_METADATA_INFO: _CONTROLLER,
    Code.CONTROLLER_GET_SYNC_STATE_DATA: _CONTROLLER,
    Code.UPDATE_CONTROLLER_CONFIG: _CONTROLLER,
    Code.GET_CONTROLLER_CONFIG: _CONTROLLER,
    Code.CLEAN_BROKER_DATA: _CONTROLLER,
    Code.CONTROLLER_GET_NEXT_BROKER_ID: _CONTROLLER,
    Code.CONTROLLER_APPLY_BROKER_ID: _CONTROLLER,
    Code.ADD_BROKER: _CONTAINER,
    Code.REMOVE_BROKER: _CONTAINER,
    Code.EXPORT_ROCKSDB_CONFIG_TO_JSON: "settings are not in RocksDB; exportMetadata exports them",
    Code.SWITCH_TIMER_ENGINE: "there is one engine for timed messages",
    Code.POP_LITE_MESSAGE: NO_LITE_TOPICS,
    Code.LITE_SUBSCRIPTION_CTL: NO_LITE_TOPICS,
    Code.GET_BROKER_LITE_INFO: NO_LITE_TOPICS,
    Code.GET_PARENT_TOPIC_INFO: NO_LITE_TOPICS,
    Code.GET_LITE_TOPIC_INFO: NO_LITE_TOPICS,
    Code.GET_LITE_CLIENT_INFO: NO_LITE_TOPICS,
    Code.GET_LITE_GROUP_INFO: NO_LITE_TOPICS,
    Code.TRIGGER_LITE_DISPATCH: NO_LITE_TOPICS,
}


def refuse(_: BrokerState, __: Connection, request: Command) -> Command:
    """Refuse a request with the reason."""
    remark = f" request type {request.code} not supported: {_REASONS[Code(request.code)]}"
    return request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)


def epochs(_: BrokerState, __: Connection, request: Command) -> Command:
    """Refuse what only brokers under a controller have, as a Java broker without one does."""
    return request.reply(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")


def replication_status(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer that this is a master without slaves."""
    status = HAStatus(
        master=True,
        master_commit_log_max_offset=state.store.log.tail,
        ha_client_runtime_info=HAClient(),
    )
    return request.reply(ResponseCode.SUCCESS, body=encode_body(status))


def take_note(_: BrokerState, __: Connection, request: Command) -> Command:
    """Accept what concerns slaves only, or stores for pops that are not in use, as Java does."""
    return request.reply(ResponseCode.SUCCESS)


def compare_queues(_: BrokerState, __: Connection, request: Command) -> Command:
    """Answer that there is one index of the queues, and no second one that could differ."""
    body = StoreCheck(check_result="there is no RocksDB here, no need check", check_status=0)
    return request.reply(ResponseCode.SUCCESS, body=encode_body(body))


HANDLERS: dict[Code, Handler] = {
    **dict.fromkeys(_REASONS, refuse),
    Code.GET_BROKER_EPOCH_CACHE: epochs,
    Code.GET_BROKER_HA_STATUS: replication_status,
    Code.RESET_MASTER_FLUSH_OFFSET: take_note,
    Code.NOTIFY_MIN_BROKER_ID_CHANGE: take_note,
    Code.POP_ROLLBACK: take_note,
    Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: compare_queues,
}
