"""The sends of a producer on its event loop, from a prepared message to its receipt.

Single messages, batches, half messages, requests and replies, traces all take this path:

1. `preparing` (or `batches`) checks and encodes what the caller passed, on the caller's own thread
   and in its context; nothing is encoded before, and nothing of it is repeated by a retry;
2. `window` admits it: back-pressure;
3. `publishing` has the topic's queues;
4. `tries` chooses a queue and decides what to do about the outcome: the rule, without IO;
5. `exchange` sends the request (`requests`) and reads the response.

`submitting` takes the same path without a task for each message, and `pocketmq.blocking.sending`
takes steps 3 to 5 on the caller's own thread. `plain_sends` is a short cut to the first response
for messages that need nothing special.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from pocketmq.balance.producer.plan import QueueChoice, SendMode
from pocketmq.client.checks import LONGEST, is_number, warn_if_milliseconds
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.exchange import LoopExchange
from pocketmq.client.producer.faults import Faults, SharedFleet
from pocketmq.client.producer.hooks import SendHook, SendHooks
from pocketmq.client.producer.plain_batches import PlainBatches
from pocketmq.client.producer.plain_sends import PlainSends
from pocketmq.client.producer.preparing import Preparing, unique_ids
from pocketmq.client.producer.publishing import Publishing
from pocketmq.client.producer.requests import Outgoing, RequestWriter
from pocketmq.client.producer.tries import AdaptiveRule, SendRule, Tries, Try
from pocketmq.client.producer.window import ByteBudget, SendWindow
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.session import Session
from pocketmq.errors import InvalidInput, SendFailed
from pocketmq.model import Message, SendReceipt
from pocketmq.model.names import wrap_namespace
from pocketmq.protocol import RequestCode

_SEND = int(RequestCode.SEND_MESSAGE_V2)
_NOTHING: Mapping[str, str] = {}


class Sending:
    """The sends of one group over one session. Belongs to one event loop.

    `publishing`, if given, is that of another sender, whose owner keeps its routes fresh.
    """

    def __init__(
        self,
        session: Session,
        options: ProducerOptions,
        hooks: list[SendHook] | None = None,
        publishing: Publishing | None = None,
    ) -> None:
        namespace = session.options.namespace
        self.session = session
        self.options = options
        self.group = wrap_namespace(namespace, options.group)
        self.namespace = namespace
        self.now = asyncio.get_running_loop().time
        self.preparing = Preparing(
            options, namespace, unique_ids(session, options.group), session.clock
        )
        self.window = SendWindow(
            options.window, ByteBudget(options.window_bytes, options.send_timeout)
        )
        adaptive = options.queue_choice is QueueChoice.ADAPTIVE
        fleet = SharedFleet(session.random.random, self.group) if adaptive else None
        self.publishing = publishing or Publishing(session, options, fleet)
        self.faults = Faults(session, options, self.publishing, fleet)
        self.hooks = SendHooks(session, self.group, [] if hooks is None else hooks)
        self.rule = self.make_rule(self.now, session.routes.refresh_soon)
        as_command = session.calls.request if session.calls.hooks else None
        writer = RequestWriter(self.group, options, as_command, session.calls.signing_user)
        self.exchange = LoopExchange(session, writer, self.window, self.now)
        self.plain = PlainSends(self)
        self.plain_batches = PlainBatches(self)

    def make_rule(self, now: Callable[[], float], refresh_route: Callable[[str], None]) -> SendRule:
        """Return the rule for the tries of a shell that has this clock and this way to routes."""
        return (SendRule if self.faults.fleet is None else AdaptiveRule)(
            self.options,
            self.session.options.profile,
            self.faults,
            self.hooks,
            now=now,
            chance=self.session.random.randrange,
            refresh_route=refresh_route,
        )

    async def send(
        self,
        message: Message,
        extra: Mapping[str, str] = _NOTHING,
        choice: Choice | None = None,
        *,
        mode: SendMode = SendMode.SYNC,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send one message; `extra` are properties added to its own (see `Preparing.prepare`).

        Raises `InvalidInput`, `SendFailed`, or what `Publishing.find` does if the topic has no
        queues.
        """
        outgoing = self.preparing.prepare(message, extra)
        return await self.deliver(outgoing, choice, mode=mode, timeout=timeout)

    async def send_to_cluster(
        self,
        message: Message,
        extra: Mapping[str, str] = _NOTHING,
        code: int = _SEND,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send to a topic of the cluster, whatever namespace the client is in; else as `send`."""
        outgoing = self.preparing.prepare(message, extra, code)
        outgoing = msgspec.structs.replace(outgoing, topic=message.topic)
        return await self.deliver(outgoing, timeout=timeout)

    async def deliver(
        self,
        outgoing: Outgoing,
        choice: Choice | None = None,
        *,
        mode: SendMode = SendMode.SYNC,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send what was prepared; raises as `send` does."""
        self.session.check()
        started = self.now()
        limit = self.options.send_timeout if timeout is None else self.limit(timeout)
        size = len(outgoing.body)
        window = self.window
        if not window.try_enter(size) and not await window.enter(size, limit):
            topic = outgoing.messages[0].topic
            raise SendFailed(topic, None, 0, self.now() - started, None)
        try:
            publication = self.publishing.ready(outgoing.topic)
            if publication is None:
                left = limit - (self.now() - started)
                publication = await self.publishing.find(outgoing.topic, left)
            if outgoing.for_5x:
                left = limit - (self.now() - started)
                outgoing = await self.publishing.adapted(outgoing, publication, left)
            tries = self.rule.tries(outgoing, publication, choice, mode, limit, started)
            # As `finish` does: one coroutine less for each message.
            try:
                queue, left = next(tries)
                while True:
                    queue, left = tries.send(await self.exchange.ask(outgoing, queue, left))
            except StopIteration as end:
                receipt: SendReceipt = end.value
                return receipt
            finally:
                tries.close()
        finally:
            window.leave(size)

    async def deliver_oneway(
        self,
        outgoing: Outgoing,
        choice: Choice | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - until it has left
    ) -> None:
        """Send without waiting for a response; raises as `send` does if it cannot leave."""
        self.session.check()
        started = self.now()
        limit = self.limit(timeout)
        publication = self.publishing.ready(outgoing.topic)
        if publication is None:
            publication = await self.publishing.find(outgoing.topic, limit)
        tries = self.rule.tries(outgoing, publication, choice, SendMode.ONEWAY, limit, started)
        try:
            queue, left = next(tries)
            while True:
                queue, left = tries.send(await self.exchange.tell(outgoing, queue, left))
        except StopIteration:
            return
        finally:
            tries.close()

    async def finish(self, outgoing: Outgoing, tries: Tries, this: Try) -> SendReceipt:
        """Make the tries that are left, `this` one first; raises as `send` does."""
        queue, left = this
        try:
            while True:
                queue, left = tries.send(await self.exchange.ask(outgoing, queue, left))
        except StopIteration as end:
            receipt: SendReceipt = end.value
            return receipt
        finally:
            tries.close()

    def limit(self, timeout: float | None) -> float:
        """Return the seconds that a send may take; raises `InvalidInput` for other values."""
        if timeout is None:
            return self.options.send_timeout
        if not is_number(timeout) or not 0 < timeout <= LONGEST:
            raise InvalidInput(f"timeout must be in seconds, up to {LONGEST:g}, not {timeout!r}")
        warn_if_milliseconds(self.group, "timeout", timeout)
        return timeout
