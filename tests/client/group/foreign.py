"""Members that brokers take for clients of another library, and what members ask brokers."""

from typing import Any

import msgspec

from pocketmq.client.calls import Fields
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.client.push.member import PushMember
from pocketmq.client.session import Session
from pocketmq.protocol.command import Command
from pocketmq.protocol.peers import Language


def speak_java(consumer: PushConsumer, **header: Any) -> None:
    """Let all requests of a consumer say that a Java client sent them, or what `header` says.

    To be called before its start: the first heartbeat is what brokers go by.
    """
    life = consumer._life
    make = life._make
    said = header or {"language": Language.JAVA}

    def make_foreign(session: Session) -> PushMember:
        own = session.calls.request

        def request(code: int, fields: Fields = None, body: bytes = b"") -> Command:
            return msgspec.structs.replace(own(code, fields, body), **said)

        vars(session.calls)["request"] = request
        return make(session)

    life._make = make_foreign


def count_requests(session: Session) -> list[int]:
    """Return the codes of all requests of a session from now on, as they are made."""
    own = session.calls.request
    codes: list[int] = []

    def request(code: int, fields: Fields = None, body: bytes = b"") -> Command:
        codes.append(code)
        return own(code, fields, body)

    vars(session.calls)["request"] = request
    return codes
