"""Members that brokers take for clients of another library, and what members ask brokers."""

from typing import Any

import msgspec

from pocketmq.client.calls import Fields
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.client.push.member import PushMember
from pocketmq.client.session import Session
from pocketmq.protocol import Command
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


class NotedRequests:
    """The requests of a session from now on."""

    def __init__(self, session: Session) -> None:
        self._requests: list[tuple[int, Fields]] = []
        own = session.calls.request

        def request(code: int, fields: Fields = None, body: bytes = b"") -> Command:
            self._requests.append((code, fields))
            return own(code, fields, body)

        vars(session.calls)["request"] = request

    def count(self, code: int, **fields: str) -> int:
        """Return the number of requests with a code and with these fields of the header."""
        return sum(
            sent == code and all(getattr(header, name) == value for name, value in fields.items())
            for sent, header in self._requests
        )
