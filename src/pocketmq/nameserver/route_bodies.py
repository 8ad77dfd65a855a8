"""Routes as bodies, encoded once for all who ask.

Two forms: the standard one (quoted keys, ASCII) for clients from 4.9.4 on and all that ask for it,
and fastjson's own with bare integer keys, which older clients were built with.
"""

import msgspec

from pocketmq.model.route import TopicRoute
from pocketmq.protocol.json_values import encode_body


class RouteBodies:
    """The bodies given out last, by topic. A route is known by identity: routes never change."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def get(self, topic: str, route: TopicRoute, order: str | None, *, standard: bool) -> bytes:
        """Give a route's body; `order` is the topic's order configuration."""
        kept = self._kept.get(topic)
        if kept is None or kept.route is not route or kept.order != order:
            kept = self._kept[topic] = _Kept(route, order)
        body = kept.standard if standard else kept.legacy
        if body is None:
            body = encode_route(route, order, standard=standard)
            if standard:
                kept.standard = body
            else:
                kept.legacy = body
        return body

    def forget(self, topic: str) -> None:
        """Let go of a topic that has no route any more."""
        self._kept.pop(topic, None)


class _Kept:
    __slots__ = ("legacy", "order", "route", "standard")

    def __init__(self, route: TopicRoute, order: str | None) -> None:
        self.route = route
        self.order = order
        self.standard: bytes | None = None
        self.legacy: bytes | None = None


def encode_route(route: TopicRoute, order: str | None, *, standard: bool) -> bytes:
    """Write a route in one of its forms."""
    if order is not None:
        route = msgspec.structs.replace(route, order_topic_conf=order)
    return encode_body(route, ascii_only=standard, bare_integer_keys=not standard)
