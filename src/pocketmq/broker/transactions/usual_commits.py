"""What a usual commit makes of its half message, packed in one step.

Usual is a half message as `rules.prepare` leaves it, with IPv4 hosts and no check time of its own,
that its own group commits. A pure function over bytes, which the compiled core replaces; None
stands for anything else, which `rules` decides. Both ways store the same.
"""

from typing import NamedTuple

from pocketmq.broker.transactions import rules
from pocketmq.errors import MQError
from pocketmq.model import property_names
from pocketmq.native import in_core
from pocketmq.protocol import DeliveryContext, RecordView, tags_code
from pocketmq.protocol.hosts import V4_SIZE
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.pulled import plain_messages
from pocketmq.protocol.record_scan import SECTOR
from pocketmq.protocol.records import pack_record

_GROUP = property_names.PRODUCER_GROUP.encode()
_IMMUNITY = property_names.CHECK_IMMUNITY_SECONDS.encode()
_LONGEST_TOPIC = 127
_NO_HOST = bytes(V4_SIZE)
_ANYWHERE = DeliveryContext()


class PackedEnding(NamedTuple):
    """A message that a half message becomes, packed without its place (see `records.placed`)."""

    topic: str
    queue_id: int
    tag: int
    record: bytes


@in_core
def usual_commit(half: bytes, group: bytes) -> tuple[str, int, int, bytes] | None:
    """Return the fields of a `PackedEnding` if a commit by a group is a usual one."""
    messages, end = plain_messages(half, _ANYWHERE)
    if len(messages) != 1 or end != len(half) or not messages[0].crc_matches():
        return None
    view = RecordView(half, 0)
    text = view.property_bytes
    if (
        find_property(text, _GROUP) != group
        or find_property(text, _IMMUNITY) is not None
        or not text.endswith(b"\2")
        or len(text) > SECTOR
    ):
        return None
    try:
        ending = rules.committed(view, text, 0)
    except MQError:
        return None
    if ending is None or len(ending.record.topic) > _LONGEST_TOPIC:
        return None
    topic, queue_id, record = ending
    place = b"\2REAL_TOPIC\1%b\2REAL_QID\1%d\2" % (record.topic, queue_id)
    if not text.endswith(place) or not topic.isprintable():
        return None
    tag = tags_code(record.property_bytes)
    return topic, queue_id, tag, pack_record(record, 0, 0, 0, _NO_HOST)
