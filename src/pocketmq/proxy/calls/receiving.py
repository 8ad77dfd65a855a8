"""ReceiveMessage: messages popped for a client, as a stream of status, messages and a time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from pocketmq.client.pop.popped import PopResult
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.questions.asking import run
from pocketmq.errors import MQError
from pocketmq.protocol import ReceivedMessage
from pocketmq.proxy.calls.receive_requests import Receive, checked, consumer_of, pop_of
from pocketmq.proxy.calls.settling import dead_letter
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.incoming import receipt_of, received
from pocketmq.proxy.translation.receipts import Receipt
from pocketmq.proxy.translation.refusals import OK, CallRefused, status, status_of
from pocketmq.proxy.translation.settings import max_attempts
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

logger = logging.getLogger("pocketmq.proxy")


async def receive_message(
    state: ProxyState, caller: Caller, request: s.ReceiveMessageRequest, remaining: float | None
) -> AsyncIterator[s.ReceiveMessageResponse | bytes]:
    """Yield a status, the messages if there are any, and the time of delivery.

    `remaining` is how long the client waits at most.
    """
    try:
        named = consumer_of(state, request)
        config = await state.cluster.group(named.group)
        known = named, config, await state.cluster.route(named.topic)
        wanted = checked(state, caller, request, remaining=remaining, known=known)
    except (CallRefused, MQError) as error:
        yield s.ReceiveMessageResponse(status=status_of(error))
        yield _end(state)
        return
    requests, question = pop_of(state, wanted)
    pop = ClientPop(state, wanted, run(question, requests.carry))
    async for response in delivered(state, caller, pop):
        yield response


class ClientPop:
    """A pop for a client, begun; if the client hangs up, its messages are visible again soon."""

    def __init__(
        self, state: ProxyState, wanted: Receive, popping: Coroutine[Any, Any, PopResult]
    ) -> None:
        self.wanted = wanted
        self._state = state
        self._taken = False  # nobody waits for the messages, and nobody has released them
        self._popping = state.tasks.spawn(popping, "pop")
        # Whoever was to wait for it may have been cancelled before it ran at all.
        self._popping.add_done_callback(self._release)

    async def result(self) -> PopResult:
        """Return what came, once it is there; raises as the pop does."""
        self._taken = True
        try:
            return await asyncio.shield(self._popping)
        except asyncio.CancelledError:
            self._taken = False
            self._popping.add_done_callback(self._release)
            raise

    def _release(self, popping: asyncio.Task[PopResult]) -> None:
        if self._taken or popping.cancelled() or popping.exception() is not None:
            return
        self._taken = True
        _reveal(self._state, self.wanted, popping.result().messages)


async def delivered(
    state: ProxyState, caller: Caller, pop: ClientPop
) -> AsyncIterator[s.ReceiveMessageResponse | bytes]:
    """Yield all responses to a client, with the messages that a pop brings."""
    wanted = pop.wanted
    try:
        result = await pop.result()
        messages = _kept(state, wanted, result.messages)
        if wanted.renew and messages:
            _renewed(state, caller, wanted, messages)
    except (CallRefused, MQError) as error:
        yield s.ReceiveMessageResponse(status=status_of(error))
    else:
        if not messages:
            yield s.ReceiveMessageResponse(status=_empty(result))
        else:
            async for response in _delivery(state, caller, wanted, messages):
                yield response
    yield _end(state)


def _end(state: ProxyState) -> s.ReceiveMessageResponse:
    done = s.ReceiveMessageResponse()
    done.delivery_timestamp.FromMilliseconds(state.clock.now_ms())
    return done


def _reveal(state: ProxyState, wanted: Receive, messages: list[ReceivedMessage]) -> None:
    for message in messages:
        receipt = receipt_of(message)
        if receipt is not None:
            revealing = state.renewals.reveal(wanted.group, wanted.topic, receipt)
            state.tasks.spawn(revealing, "release of an undelivered message")


def _kept(
    state: ProxyState, wanted: Receive, messages: list[ReceivedMessage]
) -> list[ReceivedMessage]:
    """Return the messages for the client; others are acknowledged, or go to the dead letters.

    Brokers select by the hash of a tag, so another tag may come through.
    """
    kept = []
    tags, most = wanted.subscription.tags_set, max_attempts(wanted.config)
    for message in messages:
        receipt = receipt_of(message)
        if receipt is not None and tags and message.tag not in tags:
            acknowledge = partial(_ack, state, wanted, receipt)
            state.tasks.spawn(_settle(acknowledge), "ack of an unwanted message")
        elif receipt is not None and message.reconsume_times >= most:
            bury = partial(
                dead_letter, state, wanted.topic, wanted.group, receipt, message.message_id
            )
            state.tasks.spawn(_settle(bury), "dead letter")
        else:
            kept.append(message)
    return kept


async def _ack(state: ProxyState, wanted: Receive, receipt: Receipt) -> None:
    requests = PopRequests(state.cluster.session, wanted.group, ordered=False, from_first=False)
    await requests.ack(receipt.handle.broker_name, [(wanted.topic, receipt.handle)])


async def _settle(begin: Callable[[], Awaitable[None]]) -> None:
    try:
        await begin()
    except (CallRefused, MQError) as error:
        logger.warning('settling a message failed: error="%s"; it is redelivered later', error)


def _renewed(
    state: ProxyState, caller: Caller, wanted: Receive, messages: list[ReceivedMessage]
) -> None:
    """Keep messages hidden until the client acknowledges them; raises `CallRefused` if it left."""
    if state.clients.get(caller.client_id) is None:
        _reveal(state, wanted, messages)
        text = f"The client [{caller.client_id}] is disconnected."
        raise CallRefused(d.Code.MESSAGE_NOT_FOUND, text)
    for message in messages:
        receipt = receipt_of(message)
        if receipt is not None:
            state.renewals.add(caller.client_id, wanted.group, wanted.topic, receipt)


def _empty(result: PopResult) -> d.Status:
    if result.full:
        return status(d.Code.TOO_MANY_REQUESTS, "polling full")
    found = "no match message" if result.messages else "no new message"
    return status(d.Code.MESSAGE_NOT_FOUND, found)


async def _delivery(
    state: ProxyState, caller: Caller, wanted: Receive, messages: list[ReceivedMessage]
) -> AsyncIterator[s.ReceiveMessageResponse | bytes]:
    sent = 0
    try:
        yield s.ReceiveMessageResponse(status=OK)
        for response in received(messages, wanted.hidden):
            yield response
            sent += 1
    finally:
        left = messages[sent:]
        for message in left:
            receipt = receipt_of(message)
            if receipt is not None and wanted.renew:
                state.renewals.forget(caller.client_id, wanted.group, receipt)
        _reveal(state, wanted, left)
