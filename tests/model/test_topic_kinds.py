"""Which type a message and a topic have, by Java's order of properties."""

import pytest

from pocketmq.model import property_names as names
from pocketmq.model.kinds import TopicKind, kind_of


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, "NORMAL"),
        ({names.TRANSACTION_PREPARED: "true", names.DELAY_LEVEL: "3"}, "TRANSACTION"),
        ({names.TRANSACTION_PREPARED: "TRUE"}, "TRANSACTION"),
        ({names.TRANSACTION_PREPARED: "yes"}, "NORMAL"),
        ({names.DELAY_LEVEL: "3", names.SHARDING_KEY: "k"}, "DELAY"),
        ({names.TIMER_DELIVER_MS: "3"}, "DELAY"),
        ({names.TIMER_DELAY_SEC: "3"}, "DELAY"),
        ({names.TIMER_DELAY_MS: "3", names.PRIORITY: "1"}, "DELAY"),
        ({names.SHARDING_KEY: "k", names.PRIORITY: "1"}, "FIFO"),
        ({names.PRIORITY: "1", names.LITE_TOPIC: "l"}, "PRIORITY"),
        ({names.PRIORITY: "no number"}, "PRIORITY"),
        ({names.LITE_TOPIC: "l"}, "LITE"),
    ],
)
def test_a_message_has_the_first_type_that_its_properties_ask_for(
    properties: dict[str, str], kind: str
) -> None:
    assert kind_of(properties).name == kind


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({}, TopicKind.NORMAL),
        ({"message.type": "PRIORITY"}, TopicKind.PRIORITY),
        ({"message.type": "Priority"}, TopicKind.UNSPECIFIED),
    ],
)
def test_a_topic_has_the_type_of_its_attribute(attributes: dict[str, str], kind: TopicKind) -> None:
    assert TopicKind.read(attributes) is kind
