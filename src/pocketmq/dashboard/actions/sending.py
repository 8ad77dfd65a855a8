"""Sending messages: one that a visitor wrote, or copies of all dead letters of a group."""

from collections.abc import AsyncIterator, Callable

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.actions.changing import Audit
from pocketmq.errors import InvalidInput
from pocketmq.model import Message, SendReceipt
from pocketmq.protocol import ReceivedMessage

_GROUP = "DashboardSender"
_MOST_REASONS = 3
MOST_PROPERTIES = 100


class BulkResent(msgspec.Struct, frozen=True):
    """How far a resend of many messages has come."""

    sent: int = 0
    failed: int = 0
    reasons: tuple[str, ...] = ()
    """Why messages could not be sent, the first few."""
    stopped: bool = False
    """Whether it ended before all were sent: it was stopped, or nothing could be sent."""

    def __str__(self) -> str:
        text = f"{self.sent:,} sent"
        if self.failed:
            text += f", {self.failed:,} failed ({'; '.join(self.reasons)})"
        return text + (", stopped before the end" if self.stopped else "")


class SendActions:
    """Sends on behalf of a visitor."""

    def __init__(self, admin: Admin, audit: Audit) -> None:
        self._admin = admin
        self._audit = audit

    async def send(self, who: str, message: Message) -> SendReceipt:
        """Send a message; the log has its topic and size, never its body."""

        async def send() -> SendReceipt:
            from pocketmq.aio import Producer  # slow to import

            async with Producer(options=self._admin.client_options, group=_GROUP) as producer:
                return await producer.send(message)

        what = f"send {len(message.body)} bytes to topic {message.topic!r}"
        return await self._audit(who, what, send)

    async def resend_all(
        self,
        who: str,
        what: str,
        batches: AsyncIterator[list[ReceivedMessage]],
        progress: Callable[[BulkResent], bool],
    ) -> BulkResent:
        """Send copies of messages, batch by batch; `progress` returns whether to go on.

        Ends early if none of a batch could be sent.
        """

        async def resend() -> BulkResent:
            done = BulkResent()
            async for batch in batches:
                results = await self._admin.messages.resend(batch)
                errors = [str(each.error) for each in results if each.error is not None]
                reasons = tuple(dict.fromkeys((*done.reasons, *errors)))[:_MOST_REASONS]
                sent = done.sent + len(results) - len(errors)
                done = BulkResent(sent, done.failed + len(errors), reasons)
                if not progress(done) or len(errors) == len(results):
                    return msgspec.structs.replace(done, stopped=True)
            return done

        return await self._audit(who, what, resend, str)


def written_message(topic: str, tag: str, keys: str, properties: str, body: str) -> Message:
    """Return the message of a form: keys are words, properties are lines such as `region=eu`.

    Raises `InvalidInput`.
    """
    if not topic.strip():
        raise InvalidInput("a message needs a topic")
    found: dict[str, str] = {}
    for line in properties.splitlines():
        name, equals, value = line.partition("=")
        if not line.strip():
            continue
        if not equals or not name.strip():
            raise InvalidInput(f"{line.strip()!r} is not a property; write name=value")
        found[name.strip()] = value.strip()
    if len(found) > MOST_PROPERTIES:
        raise InvalidInput(f"a message may have at most {MOST_PROPERTIES} properties here")
    return Message(
        topic.strip(), body.encode(), tag=tag.strip() or None, keys=keys.split(), properties=found
    )
