"""Signatures of sends, without going by single fields: all of a queue start with the same values.

RocketMQ signs the values of all fields in the order of their keys, then the body (see
`protocol.signature`). What comes before the message's own values is hashed once for a queue.
"""

import msgspec

from pocketmq.client.producer.plain_frames import from_json
from pocketmq.protocol.signature import (
    ACCESS_KEY,
    BINDING,
    SECURITY_TOKEN,
    SIGNATURE,
    PartlySigned,
    SigningUser,
    send_binding,
)

_json = msgspec.json.Encoder().encode
_KEYS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "m", "n")
_MOST_TEXTS = 4096


class SendSigning:
    """Signs the sends of one code to one queue. Any thread may call it.

    `values` are those of the fields `a` to `e`, `end` those of `k` to `n`, and `middle` is what the
    header has from there on.
    """

    __slots__ = ("_end", "_middle", "_partly", "_texts", "fields")

    def __init__(
        self, user: SigningUser, code: int, values: tuple[str, ...], end: str, middle: bytes
    ) -> None:
        own = {ACCESS_KEY: user.access_key}
        if user.token:
            own[SECURITY_TOKEN] = user.token
        own = {BINDING: send_binding(code, [*own, *_KEYS])} | own
        self.fields = _json(own)[1:-1] + b","
        """The fields of a request that say who sent it, for the start of its header."""
        self._partly = PartlySigned(user.secret, _bytes("".join((*own.values(), *values))))
        self._end = end
        self._middle = middle + b',"%b":"' % SIGNATURE.encode()
        self._texts: dict[bytes, str] = {}  # ends of property texts by their JSON

    def middle(self, own: str, body: bytes) -> bytes:
        """Return the middle of a message's header; `own` are its values from `f` to `j`."""
        signature = self._partly.finish(_bytes(own + self._end), body)
        return b'%b%b"},"flag":' % (self._middle, signature)

    def plain_middle(
        self, tail: bytes, prefix: str, number: int, body: bytes, born_ms: int
    ) -> bytes:
        """Return that of a plain message; arguments as those of `plain_frame`."""
        text = self._texts.get(tail)
        if text is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            text = self._texts[tail] = from_json(tail)
        own = "0%d0UNIQ_KEY\1%s%04X%s0" % (born_ms, prefix, number & 0xFFFF, text)  # noqa: UP031
        return self.middle(own, body)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
