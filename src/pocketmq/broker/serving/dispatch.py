"""From requests to answers.

All requests that arrive in one event-loop iteration are handled as they come; `CommitLogWriter`
then writes their messages and lets the answers go that promise they are stored. A handler that
fails costs its own request an answer with code 1, never the broker.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from pocketmq.broker.core.answers import answer_code
from pocketmq.broker.core.refusals import FAILED, REFUSING, check_size, refusal
from pocketmq.broker.members.requests import connection_closed
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.pulling.long_polling import LongPolling
from pocketmq.broker.serving.lanes import Lanes
from pocketmq.broker.serving.overload import (
    SHORT,
    TooManyUnsentBytes,
    busy_answer,
    with_back_pressure,
)
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.static_topics.requests import rerouted
from pocketmq.errors import MQError, ResponseCode, StoreError
from pocketmq.net import Connection
from pocketmq.net.limited_logs import RefusalLog
from pocketmq.protocol import ONEWAY_FLAG, Command
from pocketmq.protocol.catalogue import REQUESTS

logger = logging.getLogger("pocketmq.broker")

_ANNOUNCED = frozenset(code for code, row in REQUESTS.items() if row.announced)


def _write(connection: Connection, answer: Command | bytes) -> None:
    connection.write(answer if isinstance(answer, bytes) else answer.encode())


def _index(requests: list[Command], request: Command) -> int:
    """Return where a request stands in its batch, by identity."""
    return next(at for at, each in enumerate(requests) if each is request)


class Dispatcher:
    """Owner of a broker's connections."""

    def __init__(
        self,
        state: BrokerState,
        handlers: Mapping[int, Handler],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._state = state
        self._plain = {code: with_back_pressure(code, each) for code, each in handlers.items()}
        self._rerouted = {code: rerouted(code, each) for code, each in self._plain.items()}
        # Brokers without static topics do not even look for them.
        self._handlers = self._rerouted if state.mappings.entries else self._plain
        self._loop = loop
        self._refusals = RefusalLog(logger)
        self._pulls = LongPolling(state, loop)
        self._topics = state.topics.version
        self._lanes = Lanes(state)

    # What the connections call

    def connection_opened(self, connection: Connection) -> None:
        """Offer the connection the lanes: requests that they take do not come here."""
        connection.lane = self._lanes

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Handle requests; answers that depend on the store leave when the batch is written."""
        state, handlers = self._state, self._handlers
        batch, gate = state.batch, state.gate
        batch.now_ms = state.clock.now_ms()
        batch.overloaded = state.writer.overloaded
        waited = self._loop.time() - connection.waiting_since
        if waited > SHORT:
            requests = self._in_time(connection, requests, waited)
        largest = state.config.max_request_body_size
        if state.measures is not None:
            self._begin(state.measures)
        for request in requests:
            handler = handlers.get(request.code)
            answer: Answer
            try:
                if len(request.body) > largest:
                    check_size(request, largest)
                served = handler is not None
                if gate is not None and gate.check(connection, request, served=served):
                    connection.trust()
                if handler is None:
                    remark = f" request type {request.code} not supported"
                    answer = request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
                else:
                    answer = handler(state, connection, request)
            except TooManyUnsentBytes:
                connection.put_back(requests[_index(requests, request) :])
                break
            except MQError as error:
                answer = self._refusal(connection, request, error)
            except Exception:
                address = connection.remote_address
                logger.exception("request failed: client=%s request=%r", address, request)
                answer = request.reply(ResponseCode.SYSTEM_ERROR, FAILED)
            if answer is not None:
                self._answer(connection, request, answer)
        if batch.messages or batch.notes:
            state.writer.schedule(connection)
        self._settle()

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Forget what the connection waited for, and its memberships."""
        logger.debug("%s: closed, %s", connection.remote_address, cause)
        self._state.writer.forget(connection)
        self._state.waiting.drop(connection)
        if self._state.pops is not None:
            self._state.pops.drop(connection)
        connection_closed(self._state, connection)

    # What the broker calls

    async def stop(self) -> None:
        """Answer everything: what is stored, what waits for a sync, pulls with what there is.

        Requests that still come are served, but no pull waits any more.
        """
        self._state.writer.write_now()
        self._pulls.stop()
        if self._state.pops is not None:
            self._state.pops.close()
        await self._state.writer.drained()

    # Inside

    def _begin(self, measures: Measures) -> None:
        measures.began, measures.suspended = self._loop.time(), False
        batch = self._state.batch
        if not batch.began:
            batch.began = measures.began

    def _in_time(
        self, connection: Connection, requests: list[Command], waited: float
    ) -> list[Command]:
        """Refuse requests that waited too long; return the others."""
        state, wanted = self._state, []
        for request in requests:
            answer = busy_answer(state.config, request, waited, connection.waiting)
            if answer is None:
                wanted.append(request)
                continue
            state.traffic.refused += 1
            self._tell_refused(connection, request, answer)
            if not request.flag & ONEWAY_FLAG:
                _write(connection, answer)
        return wanted

    def _refusal(self, connection: Connection, request: Command, error: MQError) -> Command:
        if isinstance(error, StoreError):
            self._state.batch.check_dropped()
        answer = refusal(request, error)
        # Handlers also answer this code for what there is not; only what was raised is logged.
        if answer.code == ResponseCode.SYSTEM_ERROR:
            self._tell_refused(connection, request, answer)
        return answer

    def _answer(self, connection: Connection, request: Command, answer: Command | bytes) -> None:
        if isinstance(answer, Command) and answer.code in REFUSING:
            self._tell_refused(connection, request, answer)
        measures = self._state.measures
        if measures is not None:
            measures.answered(request.code, answer_code(answer), self._loop.time())
        if request.flag & ONEWAY_FLAG:
            return
        if request.code in _ANNOUNCED:
            self._state.announcements.when_announced(partial(_write, connection, answer))
        else:
            _write(connection, answer)

    def _tell_refused(self, connection: Connection, request: Command, answer: Command) -> None:
        peer, now = connection.remote_address, self._loop.time()
        self._refusals.refused(peer, request.code, answer.code, answer.remark, now)

    def _settle(self) -> None:
        state = self._state
        if self._topics is not state.topics.version:
            self._topics = state.topics.version
            self._handlers = self._rerouted if state.mappings.entries else self._plain
            self._pulls.release_orphans()
            if state.pops is not None:
                state.pops.topics_changed()
        self._pulls.set_timer()
