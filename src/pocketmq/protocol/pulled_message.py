"""Messages of a pull that the native core read: their fields lie in the core, all in one place.

Without the core there are none of them; a `WholeMessage` does and says the same.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pocketmq import native
from pocketmq.protocol.received import DeliveryContext, ReceivedMessage, WholeMessage, remember

_Fields = tuple[bytes, int, int, int, int, int]
_core: Any = getattr(native.core, "PulledRun", None)


def _property(name: str) -> property:
    """Return a property that one of the core's functions reads."""
    read: Callable[..., Any] | None = getattr(_core, name, None)
    return property(read)


class PulledMessage(ReceivedMessage, frozen=True, gc=False, eq=False):
    """A message whose fields the core holds, with those of all others of its pull.

    That takes less memory, and many messages wait. Only the core makes them. What
    applications read most is read in the core; all else does the same as for any message.
    """

    if not TYPE_CHECKING:  # to whom it is like any other
        _run: Any
        _at: int
        _body: bytes | None = None
        _topic: str | None = None
        _properties: Mapping[str, str] | None = None

        buffer = _property("buffer")
        position = _property("position")
        queue_offset = _property("queue_offset")
        store_size = _property("store_size")
        body_size = _property("body_size")
        text_at = _property("text_at")
        delivery = _property("delivery")
        body_crc = _property("body_crc")
        queue_id = _property("queue_id")
        flag = _property("flag")
        commit_log_offset = _property("commit_log_offset")
        sys_flag = _property("sys_flag")
        born_timestamp_ms = _property("born_timestamp_ms")
        born_host_bytes = _property("born_host_bytes")
        store_host_bytes = _property("store_host_bytes")
        store_timestamp_ms = _property("store_timestamp_ms")
        reconsume_times = _property("reconsume_times")
        body = _property("body")
        stored_body = _property("stored_body")
        property_bytes = _property("property_bytes")
        _kept_body = ReceivedMessage.body.fget
        """The body of any other message: one that is compressed, or large enough to be kept."""

    def get_property(self, name: str) -> str | None:
        """Return one property without reading the others; quicker than `properties` for a few."""
        found: str | None = _core.find_property(self, name)
        return found

    def _delivered(self, delivery: DeliveryContext) -> ReceivedMessage:
        fields: _Fields = _core.fields(self)
        return WholeMessage(
            *fields,
            delivery=delivery,
            _body=self._body,
            _topic=delivery.topic,
            _properties=self._properties,
        )


def deliver(message: ReceivedMessage, delivery: DeliveryContext) -> ReceivedMessage:
    """Return a message that was just made for the caller alone, with another delivery.

    Use the result and not the message, which may be the same: a copy costs more.
    """
    if type(message) is PulledMessage:
        fields: _Fields = _core.fields(message)
        return WholeMessage(*fields, delivery=delivery, _topic=delivery.topic)
    remember(message, "delivery", delivery)
    remember(message, "_topic", delivery.topic)
    remember(message, "_properties", None)
    return message
