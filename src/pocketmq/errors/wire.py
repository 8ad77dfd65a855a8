"""A peer's bytes break the wire format. Nothing here is retryable: the bytes will not change."""

from typing import Any

from pocketmq.errors.tree import MQError


class ProtocolError(MQError):
    """Bytes that violate RocketMQ's wire format. Close the connection."""


class FrameTooLarge(ProtocolError):
    """A frame declares more bytes than this side accepts. Nothing was allocated for it."""

    def __init__(self, declared: int, limit: int) -> None:
        self.declared = declared
        self.limit = limit
        super().__init__(f"frame of {declared} bytes exceeds the limit of {limit} bytes")


class FrameMalformed(ProtocolError):
    """A frame's lengths or serialisation type contradict each other."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"malformed frame: {reason}")


class GreetingMalformed(ProtocolError):
    """The first bytes of a connection are not the expected greeting (TLS, PROXY protocol)."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class HeaderMalformed(ProtocolError):
    """A header that does not parse, or lacks a field its request needs."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"malformed header: {reason}")


class BodyMalformed(ProtocolError):
    """A body that does not parse as the type its request code prescribes."""

    def __init__(self, expected: str, reason: str) -> None:
        self.expected = expected
        self.reason = reason
        super().__init__(f"malformed {expected}: {reason}")


class MessageMalformed(ProtocolError):
    """A stored message or batch whose lengths, magic or checksum are wrong."""

    def __init__(self, reason: str, position: int = 0) -> None:
        self.reason = reason
        self.position = position
        super().__init__(f"malformed message at byte {position}: {reason}")


class MessagesCutShort(MessageMalformed):
    """A body of several messages is damaged at `position`.

    `decoded` holds the messages before it, which are sound. If only the body of one message does
    not match its checksum, `damaged` is that message, and others may follow from `end` on; None
    means that its lengths make no sense and nothing behind it can be found.
    """

    def __init__(
        self,
        reason: str,
        position: int,
        decoded: list[Any],
        damaged: Any = None,
        end: int | None = None,
    ) -> None:
        super().__init__(reason, position)
        self.decoded = decoded
        self.damaged = damaged
        self.end = end


class BodyTooLarge(MessageMalformed):
    """A compressed body would inflate to more bytes than this side allows.

    `stored` is its size as stored, `limit` what is allowed; `where` names topic, queue and offset
    once they are known.
    """

    def __init__(self, stored: int, limit: int, where: str = "", position: int = 0) -> None:
        super().__init__(
            f"compressed body of {stored} bytes inflates to more than the limit of {limit} bytes",
            position,
        )
        self.stored = stored
        self.limit = limit
        self.where = where
        if where:
            self.args = (f"{where}: {self.reason}",)

    def at(self, where: str) -> "BodyTooLarge":
        """Return the same error with the place of the message."""
        return BodyTooLarge(self.stored, self.limit, where, self.position)


class CodecMissing(ProtocolError):
    """A message is compressed with a codec that is not installed here."""

    def __init__(self, codec: str) -> None:
        self.codec = codec
        super().__init__(
            f"codec {codec} is not installed; run: pip install 'pocketmq[compression]'"
        )


class UnknownRequestCode(ProtocolError):
    """A request code that RocketMQ does not have; the text is Java's."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"request type {code} not supported")
