"""From requests to answers, one turn of the loop at a time.

All requests that arrive in a turn are handled as they come; at its end their messages are written
with one call, and only then the answers leave that promise they are stored. Pulls that waited for
those messages are tried again in the same breath. A handler that fails costs its own request an
answer with code 1, never the broker.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from pocketmq.broker.answers import answer_code
from pocketmq.broker.group_commit import GroupCommit, release
from pocketmq.broker.handlers.membership import connection_closed
from pocketmq.broker.handlers.sending import NO_ROOM
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.patience import SHORT, busy_answer
from pocketmq.broker.refusals import FAILED, REFUSING, check_size, refusal
from pocketmq.broker.room import NoRoom, with_room
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.turn import Answers, Turn
from pocketmq.broker.waiting_pulls import WaitingPulls
from pocketmq.errors import MQError, ResponseCode, StoreError
from pocketmq.net import Connection
from pocketmq.net.refusal_log import RefusalLog
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.command import ONEWAY_FLAG, Command

logger = logging.getLogger("pocketmq.broker")

_ANNOUNCED = frozenset(code for code, row in REQUESTS.items() if row.announced)


def _write(connection: Connection, answer: Command | bytes) -> None:
    connection.write(answer if isinstance(answer, bytes) else answer.encode())


def _index(requests: list[Command], request: Command) -> int:
    """Return where a request stands in its batch, by identity."""
    return next(at for at, each in enumerate(requests) if each is request)


def _at_once(then: Callable[[], None]) -> None:
    then()


class Dispatcher:
    """Owner of a broker's connections."""

    def __init__(
        self,
        state: BrokerState,
        handlers: Mapping[int, Handler],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._state = state
        self._handlers = {code: with_room(code, each) for code, each in handlers.items()}
        self._loop = loop
        self._commit = GroupCommit(state.store, loop, self._let_go)
        self._refusals = RefusalLog(logger)
        self._ending: asyncio.Handle | None = None
        self._pulls = WaitingPulls(state, loop)
        self._latest: Connection | None = None  # who sent messages last
        self._topics = state.topics.version
        self.when_announced: Callable[[Callable[[], None]], None] = _at_once
        """Calls back once name servers have been told of changed topics."""

    # What the connections call

    def connection_opened(self, connection: Connection) -> None:
        """Nothing to do before the first request."""

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Handle requests; answers that depend on the store leave at the end of the turn."""
        state, handlers = self._state, self._handlers
        turn, gate = state.turn, state.gate
        turn.now_ms = state.clock.now_ms()
        turn.overloaded = self._commit.messages > 0 and self._commit.exceeds(state.config)
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
            except NoRoom:
                connection.put_back(requests[_index(requests, request) :])
                break
            except MQError as error:
                answer = self._refusal(connection, request, error)
            except Exception:
                logger.exception("%s: %r failed", connection.remote_address, request)
                answer = request.reply(ResponseCode.SYSTEM_ERROR, FAILED)
            if answer is not None:
                self._answer(connection, request, answer)
        if (turn.messages or turn.notes) and self._ending is None:
            self._choose_end(connection)
        self._settle()

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Forget what the connection waited for and whom it stood for."""
        logger.debug("%s: closed, %s", connection.remote_address, cause)
        if self._latest is connection:
            self._latest = None
        self._state.waiting.drop(connection)
        if self._state.pops is not None:
            self._state.pops.drop(connection)
        connection_closed(self._state, connection)

    # What the broker calls

    def end_turn(self) -> None:
        """Write and answer what this turn has collected, now.

        Whoever appends outside of a request (a delay that is over, …) calls it afterwards, whoever
        works on the store otherwise before.
        """
        if self._ending is not None:
            self._ending.cancel()
        self._end_turn()

    async def stop(self) -> None:
        """Answer everything: what is stored, what waits for a sync, pulls with what there is.

        Requests that still come are served, but no pull waits any more.
        """
        self.end_turn()
        self._pulls.stop()
        if self._state.pops is not None:
            self._state.pops.close()
        await self._commit.drained()

    # Inside

    def _begin(self, measures: Measures) -> None:
        measures.began, measures.suspended = self._loop.time(), False
        turn = self._state.turn
        if not turn.began:
            turn.began = measures.began

    def _in_time(
        self, connection: Connection, requests: list[Command], waited: float
    ) -> list[Command]:
        """Refuse those of requests that waited too long for their turn; give the others."""
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
            self._state.turn.doubt()
        answer = refusal(request, error)
        if (
            answer.code == ResponseCode.SYSTEM_ERROR
        ):  # most of those that handlers give mean no harm
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
            self.when_announced(partial(_write, connection, answer))
        else:
            _write(connection, answer)

    def _tell_refused(self, connection: Connection, request: Command, answer: Command) -> None:
        peer, now = connection.remote_address, self._loop.time()
        self._refusals.refused(peer, request.code, answer.code, answer.remark, now)

    def _choose_end(self, connection: Connection) -> None:
        """End the turn at once for a client that is alone, else after those that come with it.

        Waiting costs two more rounds of the loop: too much for one client that sends one message
        after another, little for many that share one write.
        """
        if connection is self._latest:
            self._end_turn()
        else:
            self._latest = connection
            self._ending = self._loop.call_soon(self._end_turn)

    def _settle(self) -> None:
        state = self._state
        if self._topics is not state.topics.version:
            self._topics = state.topics.version
            self._pulls.release_orphans()
            if state.pops is not None:
                state.pops.topics_changed()
        self._pulls.set_timer()

    def _end_turn(self) -> None:
        self._ending = None
        state = self._state
        turn = state.turn.take()
        try:
            if turn.notes and state.pops is not None:
                state.pops.seal()
            state.store.write()
        except StoreError as error:
            logger.warning("messages could not be written: %s", error)
            turn.failed = True
        if turn.failed:
            self._refuse(turn.held)
            self._refuse(turn.ready)
            self._wake(turn)  # what came after the failure may be stored all the same
            return
        if turn.messages:
            state.traffic.took(turn.messages, turn.size, state.clock.now_ms() - turn.now_ms)
            state.stats.were_stored(turn.topics)
        self._release(turn)
        self._wake(turn)

    def _release(self, turn: Turn) -> None:
        config = self._state.config
        self._let_go(turn.ready, turn.began)
        if not config.sync_flush:
            self._let_go(turn.held, turn.began)
        elif turn.held:
            timeout = config.sync_flush_timeout / 1000
            self._commit.hold(turn.held, turn.messages, turn.size, timeout, turn.began)

    def _let_go(self, answers: Answers, began: float, code: int = 0) -> None:
        """Send answers, each connection's in one piece."""
        release(answers)
        measures = self._state.measures
        if measures is not None and answers:
            measures.began, measures.suspended = began, False
            now = self._loop.time()
            for entries in answers.values():
                for request, _ in entries:
                    measures.answered(request.code, code, now)

    def _refuse(self, answers: Answers) -> None:
        refused = self._state.send_answers.refused
        for connection, entries in answers.items():
            for request, _ in entries:
                self._state.traffic.refused += 1
                answer = refused(request, ResponseCode.SERVICE_NOT_AVAILABLE, NO_ROOM)
                connection.write(answer.encode())

    def _wake(self, turn: Turn) -> None:
        """Try again the pulls that messages of this turn may be for."""
        if turn.arrivals:
            self._pulls.wake(turn.arrivals)
            if self._state.turn.notes:
                self._end_turn()  # what was popped is put down before its answers leave
