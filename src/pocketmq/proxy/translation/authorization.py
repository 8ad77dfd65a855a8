"""What a call must prove and may do: the signature in its metadata, and the needs of its request.

A client signs the time it names in `x-mq-date-time`, and nothing of the request, as RocketMQ's 5.x
clients do: a captured header serves for other calls, too. TLS keeps others from capturing it.
"""

import hmac
from collections.abc import Iterator
from hashlib import sha1
from typing import Any

import msgspec

from pocketmq.broker.access.needs import Need, group_resource, topic_resource
from pocketmq.broker.access.rules import Action
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

PUB, SUB = (Action.PUB,), (Action.SUB,)
ANY_USE = (Action.PUB, Action.SUB, Action.GET)


class SignedTime(msgspec.Struct, frozen=True):
    """A user's name, and the signature of a time."""

    username: str
    signature: str
    content: str

    def proves(self, secret: str) -> bool:
        """Return whether the signature was made with a secret."""
        own = hmac.new(secret.encode(), self.content.encode(), sha1).hexdigest()
        return hmac.compare_digest(own.encode(), self.signature.lower().encode())


def read_signature(caller: Caller) -> SignedTime:
    """Return who signed a call; raises `CallRefused` with Apache's texts if it is not signed."""
    if not caller.authorization:
        raise unauthorized("username cannot be null.")
    if not caller.date_time:
        raise unauthorized("datetime is null.")
    _, space, rest = caller.authorization.partition(" ")
    if not space:
        raise unauthorized("authentication header is incorrect.")
    fields = {}
    for part in rest.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals:
            raise unauthorized("authentication keyValues length is incorrect, actual length=1.")
        fields[name] = value
    username = fields.get("Credential", "").partition("/")[0]
    if not username:
        raise unauthorized("username cannot be null.")
    return SignedTime(username, fields.get("Signature", ""), caller.date_time)


def unauthorized(text: str) -> CallRefused:
    """Return the refusal of a call whose user is not proven or may not make it."""
    return CallRefused(d.Code.UNAUTHORIZED, text)


def needs_of(request: Any) -> list[Need]:
    """Return what a request needs; nothing but a user if it is about no resource."""
    return list(_needs(request))


def _needs(request: Any) -> Iterator[Need]:
    match request:
        case s.SendMessageRequest():
            for message in request.messages:
                yield Need(topic_resource(message.topic.name), PUB)
        case s.RecallMessageRequest() | s.EndTransactionRequest():
            yield Need(topic_resource(request.topic.name), PUB)
        case s.QueryRouteRequest():
            yield Need(topic_resource(request.topic.name), ANY_USE)
        case s.QueryOffsetRequest():
            yield Need(topic_resource(request.message_queue.topic.name), SUB)
        case s.HeartbeatRequest() | s.NotifyClientTerminationRequest():
            if request.group.name:
                yield Need(group_resource(request.group.name), SUB)
        case s.TelemetryCommand():
            yield from _settings_needs(request.settings)
        case (
            s.ReceiveMessageRequest()
            | s.PullMessageRequest()
            | s.UpdateOffsetRequest()
            | s.GetOffsetRequest()
        ):
            yield Need(group_resource(request.group.name), SUB)
            yield Need(topic_resource(request.message_queue.topic.name), SUB)
        case _:  # all others have a topic and a group
            yield Need(group_resource(request.group.name), SUB)
            yield Need(topic_resource(request.topic.name), SUB)


def _settings_needs(settings: d.Settings) -> Iterator[Need]:
    for topic in settings.publishing.topics:
        yield Need(topic_resource(topic.name), PUB)
    if settings.HasField("subscription"):
        yield Need(group_resource(settings.subscription.group.name), SUB)
        for entry in settings.subscription.subscriptions:
            yield Need(topic_resource(entry.topic.name), SUB)
