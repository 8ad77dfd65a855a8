"""From a request to its answer: access check, handler, and errors as RocketMQ's codes."""

import logging
from collections.abc import Hashable

from pocketmq.errors import MQError, NoPermission, ResponseCode, ServerError
from pocketmq.nameserver.handlers import brokers, routes, settings
from pocketmq.nameserver.state import Handler, NameServerState
from pocketmq.protocol.command import Command

_log = logging.getLogger("pocketmq.nameserver")

HANDLERS: dict[int, Handler] = {
    int(code): handler
    for part in (brokers, routes, settings)
    for code, handler in part.HANDLERS.items()
}

_CONTROLLER = range(1001, 1014)
"""Requests that a Java name server answers if a controller runs in it."""


def answer(state: NameServerState, connection: Hashable, request: Command) -> Command:
    """Return the answer to any request. Never raises."""
    handler = HANDLERS.get(request.code)
    if handler is None:
        remark = f" request type {request.code} not supported"  # the blank is Java's
        if request.code in _CONTROLLER:
            remark += ": there is no controller here"
        return request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
    try:
        state.asked_by_super = state.gate is not None and state.gate.check(connection, request)
        return handler(state, connection, request)
    except NoPermission as error:
        now = state.clock()
        state.refusals.refused(str(_peer(connection)), request.code, error.code, error.remark, now)
        return request.reply(error.code, error.remark)
    except ServerError as error:
        return request.reply(error.code, error.remark)
    except MQError as error:
        _log.warning("request %s from %s refused: %s", request.code, _peer(connection), error)
        return request.reply(ResponseCode.SYSTEM_ERROR, str(error))
    except Exception as error:  # noqa: BLE001 - one request must not take the name server down
        _log.exception("request %s from %s failed", request.code, _peer(connection))
        return request.reply(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")


def _peer(connection: Hashable) -> object:
    """Return a peer's address for the log."""
    return getattr(connection, "remote_address", connection)
