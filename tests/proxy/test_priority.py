"""Messages with priorities through the proxy: sent, refused, received by their urgency."""

from typing import Any

import pytest

from pocketmq.model import property_names as names
from pocketmq.model.kinds import TopicKind
from pocketmq.protocol.property_text import decode_properties
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.outgoing import stored_forms
from pocketmq.proxy.translation.routes import accepted_types
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from tests.proxy.peers import code, message, serving

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("system", "kind", "stored"),
    [
        ({"priority": 0}, TopicKind.PRIORITY, "0"),
        ({"priority": 2**31 - 1}, TopicKind.PRIORITY, "2147483647"),
        ({"priority": 1, "message_group": "g"}, TopicKind.FIFO, "1"),  # its broker drops it
        ({}, TopicKind.NORMAL, None),
    ],
)
def test_a_priority_becomes_a_property(
    system: dict[str, Any], kind: TopicKind, stored: str | None
) -> None:
    (form,) = stored_forms([message("urgent", b"x", **system)], "", ProxyLimits(), NOW)
    assert form.kind is kind
    assert decode_properties(form.properties.encode()).get(names.PRIORITY) == stored


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        (TopicKind.PRIORITY, [d.MessageType.PRIORITY]),
        (TopicKind.LITE, [d.MessageType.LITE]),
        (TopicKind.UNSPECIFIED, [d.MessageType.MESSAGE_TYPE_UNSPECIFIED]),
    ],
)
def test_a_topic_accepts_its_own_type(kind: TopicKind, types: list[int]) -> None:
    assert accepted_types(kind) == types


async def test_the_most_urgent_are_received_first() -> None:
    async with serving() as served:
        peer = served.peer
        for priority in (0, 1, 0, 7):
            sent = await peer.send("urgent", b"%d" % priority, priority=priority)
            assert code(sent) == "OK", sent.status
        got: list[d.Message] = []
        while len(got) < 4:
            got += await peer.received("urgent", "g", batch_size=1)
        assert [each.system_properties.priority for each in got] == [1, 7, 0, 0]
        assert {each.system_properties.message_type for each in got} == {d.MessageType.PRIORITY}
        assert {each.system_properties.queue_id for each in got[:2]} == {1}
        route = await peer.call(
            "QueryRoute",
            s.QueryRouteRequest(topic=d.Resource(name="urgent"), endpoints=peer.endpoints),
        )
        assert list(route.message_queues[0].accept_message_types) == [d.MessageType.PRIORITY]


@pytest.mark.parametrize(
    ("topic", "system", "words"),
    [
        ("urgent", {}, "the expected type is PRIORITY, but actual type is NORMAL"),
        ("urgent", {"priority": 1, "message_group": "g"}, "PRIORITY, but actual type is FIFO"),
        ("normal", {"priority": 1}, "the expected type is NORMAL, but actual type is PRIORITY"),
        ("fifo", {"priority": 1}, "the expected type is FIFO, but actual type is PRIORITY"),
    ],
)
async def test_types_of_topics_are_enforced(topic: str, system: dict[str, Any], words: str) -> None:
    async with serving() as served:
        refused = await served.peer.send(topic, b"x", **system)
        assert code(refused) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
        assert words in refused.status.message
