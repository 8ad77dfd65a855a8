"""Questions asked on the caller's own thread: of a name server, a queue's broker, any address.

Runs the generators of `client.questions`. What fails for a transient reason is retried for a while.
Works with addresses; what is asked for is up to `record_reader`.
"""

import os
import random
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from pocketmq import errors
from pocketmq.blocking.calls_in_flight import CallsInFlight
from pocketmq.blocking.connection import BlockingConnection
from pocketmq.blocking.connection_pool import ConnectionPool, tls_connections
from pocketmq.blocking.many_questions import Outcome, ask_each
from pocketmq.client.addresses import BrokerAddresses
from pocketmq.client.calls import hooks_for, request_name
from pocketmq.client.name_servers import name_server_addresses
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions.asking import ABSENT, Ask, Question, route_of, run_blocking
from pocketmq.model import MessageQueue, TopicRoute
from pocketmq.model.names import wrap_namespace
from pocketmq.model.route import MASTER_ID
from pocketmq.net import parse_address
from pocketmq.net.reasons import reason_of
from pocketmq.protocol import Command, RequestCode

K = TypeVar("K")
T = TypeVar("T")

_NO_ROUTE = ABSENT | {int(errors.ResponseCode.SYSTEM_ERROR)}
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class Questions:
    """Asks the servers of a cluster; `name` is for error messages. Threads may share it."""

    def __init__(self, options: ClientOptions, name: str, patience: float) -> None:
        self._options = options
        self._name = name
        self._patience = patience
        self._servers = list(name_server_addresses(options.name_servers, os.environ))
        random.shuffle(self._servers)
        self._hooks = hooks_for(options)
        make = None if options.tls is None else tls_connections(options.tls)
        self._connections = ConnectionPool(resolve, make=make)
        self._in_flight: dict[str, CallsInFlight] = {}  # by address, once a thread has waited
        self._addresses = BrokerAddresses()
        self._suggested: dict[MessageQueue, int] = {}
        self._closed = False

    def suggest(self, queue: MessageQueue, broker_id: int) -> None:
        """Set the broker id to pull a queue from, if not the master."""
        self._suggested[queue] = broker_id

    def master(self, queue: MessageQueue) -> str:
        """Return the address of a queue's master, by the last route. Raises `BrokerNotFound`."""
        addresses = self._addresses
        return addresses.for_reading(addresses.holder(queue), MASTER_ID, only_this=True).address

    def close(self) -> None:
        """Close all connections; questions raise `ClientClosed` from now on."""
        self._closed = True
        self._connections.close()
        for in_flight in list(self._in_flight.values()):
            in_flight.notify_all()

    def wrap(self, name: str) -> str:
        """Return the name of a topic or group with its namespace."""
        return wrap_namespace(self._options.namespace, name)

    def route(self, topic: str, *, patience: float | None = None) -> TopicRoute:
        """Return a topic's route. Raises `RouteNotFound`, `NameServersUnreachable`."""
        try:
            route = self.consult(route_of(self.wrap(topic), _NO_ROUTE), patience=patience)
        except errors.RouteNotFound:
            raise errors.RouteNotFound(topic) from None
        self._addresses.take(route.broker_datas)
        name = self.wrap(topic)
        if leaders := route.leaders(name):
            self._addresses.lead(name, leaders)
        return route

    def consult(self, question: Question[T], *, patience: float | None = None) -> T:
        """Ask the first name server that answers within `patience` seconds."""
        return run_blocking(question, lambda asked: self._consult(asked, patience))

    def _consult(self, asked: Ask, patience: float | None = None) -> Command:
        lasting = self._patience if patience is None else patience
        deadline, pause = time.monotonic() + lasting, _FIRST_PAUSE
        while True:
            failure: errors.TransportError | None = None
            for server in self._servers:
                try:
                    return self._ask_at(server, asked)
                except errors.TransportError as error:
                    failure = error
                    servers = [each for each in self._servers if each != server]
                    self._servers = [*servers, server]  # the last one from now on
            if time.monotonic() + pause > deadline:
                reason = "" if failure is None else failure.reason
                raise errors.NameServersUnreachable(
                    tuple(sorted(self._servers)), reason
                ) from failure
            time.sleep(pause)  # on the caller's own thread; nothing announces that a server is back
            pause = min(2 * pause, _LONGEST_PAUSE)

    def ask(self, question: Question[T]) -> T:
        """Ask the brokers of the queues that a question is about; transient errors are retried."""
        return run_blocking(question, self._carry)

    def ask_each(self, questions: Mapping[K, Question[T]]) -> dict[K, T | errors.MQError]:
        """Ask the brokers of queues, those of one broker together; nothing is retried.

        An error stands in place of a result. Raises `ClientClosed`.
        """
        return ask_each(questions, self._address_of, self._exchange)

    def _address_of(self, asked: Ask) -> str:
        assert asked.queue is not None
        return self._address(asked.queue, asked.code)

    def _exchange(self, address: str, asked: Sequence[Ask]) -> list[Outcome]:
        """Send requests together, and once more if the connection was dead; all are idempotent."""
        if self._closed:
            raise errors.ClientClosed(self._name)
        try:
            try:
                answers = self._answers(address, asked)
            except errors.ConnectionLost:
                self._connections.forget(address)
                answers = self._answers(address, asked)
        except errors.TransportError as error:
            return [error] * len(asked)
        outcomes: list[Outcome] = []
        for each, answer in zip(asked, answers, strict=True):
            if answer.code in each.accept:
                outcomes.append(answer)
            else:
                name = request_name(each.code)
                outcomes.append(
                    errors.server_error(answer.code, answer.remark, request=name, address=address)
                )
        return outcomes

    def _answers(self, address: str, asked: Sequence[Ask]) -> list[Command]:
        timeout = self._options.request_timeout
        connection = self._take(address, timeout)
        try:
            numbers, frames = [], []
            for each in asked:
                fields = each.header.to_ext()
                for hook in self._hooks:
                    hook(each.code, fields, each.body)
                numbers.append(connection.next_opaque())
                command = Command.request(each.code, numbers[-1], fields, each.body)
                frames.append(command.encode())
            answers = connection.ask_all(frames, asked[0].code, timeout)
        except BaseException:
            self._drop(connection)
            raise
        self._give(connection)
        return [answers[number] for number in numbers]

    def ask_address(self, address: str, question: Question[T]) -> T:
        """Ask the server at an address; raises `ServerError` and `TransportError`."""
        return run_blocking(question, lambda asked: self._ask_at(address, asked))

    def _carry(self, asked: Ask) -> Command:
        queue = asked.queue
        if queue is None:
            return self._consult(asked)
        if asked.newest:
            self._suggested.pop(queue, None)
        limit = asked.timeout
        if limit is not None:
            limit = max(limit, self._options.request_timeout)
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            try:
                return self._ask_at(self._address(queue, asked.code), asked, limit)
            except errors.MQError as error:
                self._suggested.pop(queue, None)
                if not error.retryable or time.monotonic() + pause > deadline:
                    raise
                refresh = error.refresh_route or isinstance(error, errors.TransportError)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if refresh:
                self._refresh(queue.topic)

    def _address(self, queue: MessageQueue, code: RequestCode) -> str:
        wanted = MASTER_ID
        if code == RequestCode.PULL_MESSAGE:
            wanted = self._suggested.get(queue, MASTER_ID)
        addresses = self._addresses
        try:
            return addresses.for_reading(addresses.holder(queue), wanted).address
        except errors.MQError:
            self._refresh(queue.topic)
            return addresses.for_reading(addresses.holder(queue), wanted).address

    def _refresh(self, topic: str) -> None:
        # Without a route the broker may still answer; if not, its error is raised.
        with suppress(errors.RouteNotFound, errors.NameServersUnreachable):
            self.route(topic, patience=0.0)

    def _ask_at(self, address: str, asked: Ask, timeout: float | None = None) -> Command:
        """Send a request to an address, and once more if the connection was dead.

        All requests sent here are idempotent: they read, or set a value that they have set before.
        """
        timeout = self._options.request_timeout if timeout is None else timeout
        if self._closed:
            raise errors.ClientClosed(self._name)
        code, fields = asked.code, asked.header.to_ext()
        for hook in self._hooks:
            hook(code, fields, asked.body)
        try:
            answer = self._answer(address, code, fields, asked.body, timeout)
        except errors.ConnectionLost:  # a pooled connection may be to a server that was restarted
            self._connections.forget(address)
            answer = self._answer(address, code, fields, asked.body, timeout)
        if answer.code not in asked.accept:
            name = request_name(code)
            raise errors.server_error(answer.code, answer.remark, request=name, address=address)
        return answer

    def _answer(
        self, address: str, code: int, fields: dict[str, str], body: bytes, timeout: float
    ) -> Command:
        connection = self._take(address, timeout)
        try:
            opaque = connection.next_opaque()
            frame = Command.request(code, opaque, fields, body).encode()
            answer = connection.ask(frame, opaque, code, timeout)
        except BaseException:
            self._drop(connection)
            raise
        self._give(connection)
        return answer

    def _take(self, address: str, timeout: float) -> BlockingConnection:
        """Return a connection for the caller alone; waits while all are in use."""

        def find() -> BlockingConnection | None:
            if self._closed:
                raise errors.ClientClosed(self._name)
            return self._connections.take(address, time.monotonic() + timeout)

        try:
            connection = find()
            if connection is None:
                in_flight = self._in_flight.setdefault(address, CallsInFlight())
                connection = in_flight.wait_for(find)
                assert connection is not None  # it waits without limit
        except BaseException:  # such as when it could not connect: another one may try
            self._notify(address)
            raise
        return connection

    def _give(self, connection: BlockingConnection) -> None:
        self._connections.give(connection)
        self._notify(connection.address)

    def _drop(self, connection: BlockingConnection) -> None:
        self._connections.drop(connection)
        self._notify(connection.address)

    def _notify(self, address: str) -> None:
        in_flight = self._in_flight.get(address)
        if in_flight is not None:
            in_flight.notify()


def resolve(address: str, deadline: float) -> Sequence[tuple[str, int]]:  # noqa: ARG001 - the resolver has its own limits
    """Return the socket addresses of an address; raises `ConnectFailed`."""
    host, port = parse_address(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise errors.ConnectFailed(address, reason_of(error)) from error
    return [place[4][:2] for place in found]  # type: ignore[misc] # IPv6 places have two more
