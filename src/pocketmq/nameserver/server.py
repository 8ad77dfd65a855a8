"""A name server on the network: connections in, answers out, one timer for silent brokers.

From a request to its answer: access check, handler, and errors as RocketMQ's codes. Everything runs
on one event loop. The rules are in `RouteRegistry`, the answers in `handlers`. What few name
servers need is imported when they do, so that the others start sooner.
"""

import asyncio
import logging
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq import errors
from pocketmq.nameserver.config import NameServerConfig
from pocketmq.nameserver.handlers import brokers, routes, settings
from pocketmq.nameserver.registrations import NotifyMinBrokerId
from pocketmq.nameserver.saved_files import open_state
from pocketmq.nameserver.state import Handler, NameServerState
from pocketmq.net import Address, Connection, Dialer, Limits, Server
from pocketmq.protocol import Command, RequestCode

if TYPE_CHECKING:
    from pocketmq.nameserver.access_control import NameServerGate

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
        return request.reply(errors.ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
    try:
        state.asked_by_super = state.gate is not None and state.gate.check(connection, request)
        return handler(state, connection, request)
    except errors.NoPermission as error:
        now = state.clock()
        state.refusals.refused(str(_peer(connection)), request.code, error.code, error.remark, now)
        return request.reply(error.code, error.remark)
    except errors.ServerError as error:
        return request.reply(error.code, error.remark)
    except errors.MQError as error:
        _log.warning("request %s from %s refused: %s", request.code, _peer(connection), error)
        return request.reply(errors.ResponseCode.SYSTEM_ERROR, str(error))
    except Exception as error:  # noqa: BLE001 - one request must not take the name server down
        _log.exception("request %s from %s failed", request.code, _peer(connection))
        return request.reply(errors.ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}")


def _peer(connection: Hashable) -> object:
    """Return a peer's address for the log."""
    return getattr(connection, "remote_address", connection)


DEFAULT_PORT = 9876


class NameServer:
    """One name server. Several run independently; brokers register with all of them.

    With `data`, a directory, key values and updated settings outlive it; routes never do. `supers`
    are super users beside those of the settings, passwords by name. Raises `InvalidInput` for
    access control without any user or address that could register a broker.
    """

    def __init__(
        self,
        config: NameServerConfig | None = None,
        data: Path | None = None,
        supers: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config or NameServerConfig()
        self.data = data
        self._supers = dict(self.config.initial_users()) | dict(supers or {})
        config = self.config
        known = self._supers or config.authentication_users_file or config.trusted_brokers()
        if config.authentication_enabled and not known:
            raise errors.InvalidInput(
                "authenticationEnabled needs initAuthenticationUser, authenticationUsersFile or "
                "trustedBrokerAddresses; otherwise no broker could register"
            )
        self.address: Address | None = None
        self._state: NameServerState | None = None
        self._server: Server | None = None
        self._dialer: Dialer | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()

    async def start(self, host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> Address:
        """Listen, and return the address listened on; port 0 takes any free one.

        Raises `ListenFailed` if the port is taken, `StoreError` if `data` is unusable,
        `InvalidInput` if the file of users is.
        """
        state = open_state(self.config, self.data, asyncio.get_running_loop().time)
        state.gate = self._make_gate()
        limits = Limits(
            idle=float(state.config.server_channel_max_idle_time_seconds),
            backlog=state.config.server_socket_backlog,
            memory=state.config.max_connection_memory,
        )
        server = Server(self, limits)
        server.guard(state.config.handshake(limits, self.data))
        self._state = state
        try:
            self.address = await server.listen(host, port)
        except BaseException:
            self._state = None
            raise
        self._server = server
        state.place |= {"bindAddress": self.address.host, "listenPort": str(self.address.port)}
        _log.info("name server listening on %s", self.address)
        return self.address

    async def stop(self) -> None:
        """Close every connection and drop all routes; what is saved stays."""
        self._state = self.address = None
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        if self._dialer is not None:
            await self._dialer.close()
        if self._server is not None:
            await self._server.close()
        self._server = self._dialer = None

    # Owner of its connections

    def connection_opened(self, connection: Connection) -> None:
        """Do nothing: a connection means nothing before a broker registers on it."""

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Answer a batch."""
        state = self._state
        if state is None:
            return
        for position, request in enumerate(requests):
            if connection.crowded:
                requests, rest = requests[:position], requests[position:]
                connection.put_back(rest)
                break
            answered = answer(state, connection, request)
            if not request.is_oneway:
                connection.write(answered.encode())
        if any(request.code == RequestCode.REGISTER_BROKER for request in requests):
            self._watch_silence()
        self._send_notifications()

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Remove the brokers that registered on it, at once."""
        if self._state is not None:
            for departed in self._state.table.connection_lost(connection):
                reason = cause or "its connection was closed"
                _log.warning(
                    "broker lost: name=%s address=%s reason=%s",
                    departed.name, departed.key.address, reason,
                )  # fmt: skip
                self._state.notify(departed.notify)
            self._send_notifications()

    # Inside

    def _make_gate(self) -> "NameServerGate | None":
        config = self.config  # as given at the start: access control cannot change over the wire
        if not config.authentication_enabled:
            return None
        from pocketmq.nameserver.access_control import NameServerGate, Users

        path = config.authentication_users_file
        return NameServerGate(config, Users(self._supers, Path(path) if path else None))

    def _watch_silence(self) -> None:
        """Keep one timer, set to the first broker's heartbeat deadline."""
        assert self._state is not None
        deadline = self._state.table.next_deadline()
        if deadline is None or (self._expiry is not None and self._expiry.when() <= deadline):
            return
        if self._expiry is not None:
            self._expiry.cancel()
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        if self._state is None:
            return
        for departed in self._state.table.expire(self._state.clock()):
            _log.warning(
                "broker lost: name=%s address=%s reason=no heartbeat in time",
                departed.name, departed.key.address,
            )  # fmt: skip
            self._state.notify(departed.notify)
            if isinstance(departed.connection, Connection):
                cause = errors.ConnectionLost(departed.key.address, "no heartbeat in time")
                departed.connection.close(cause)
        self._watch_silence()
        self._send_notifications()

    def _send_notifications(self) -> None:
        if self._state is None or not self._state.notifications:
            return
        notifications, self._state.notifications = self._state.notifications, []
        if self._dialer is None:
            self._dialer = Dialer(self, tls=self._state.config.client_tls())
        for each in notifications:
            for receiver in each.receivers:
                task = asyncio.create_task(_notify(self._dialer, receiver, each))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)


async def _notify(dialer: Dialer, receiver: str, notification: NotifyMinBrokerId) -> None:
    """Notify one broker, without retries: brokers also poll for this now and then (901)."""
    from pocketmq.protocol.requests.broker_admin import NotifyMinBrokerIdChangeRequest

    header = NotifyMinBrokerIdChangeRequest(
        min_broker_id=notification.broker_id,
        min_broker_addr=notification.address,
        offline_broker_addr=notification.offline_address,
        ha_broker_addr=notification.ha_address,
    )
    request = Command.request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, 0, header, oneway=True)
    try:
        connection = await dialer.connect(receiver)
        connection.send_oneway(request)
    except errors.MQError as error:
        _log.warning("notifying broker %s of the lowest broker id failed: %s", receiver, error)
