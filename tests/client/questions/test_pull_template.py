"""The fields of pulls that a consumer sends again and again."""

import pytest

from pocketmq.balance.consumer.pulling import CommitWithPull
from pocketmq.client.questions.pulling import PullSpec, PullTemplate
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command

COMMIT = CommitWithPull(True, 7)


def flags(broker: str) -> int:
    template = PullTemplate(MessageQueue("orders", broker, 0), PullSpec("billing", 32))
    return template.numbers(9, 32, COMMIT).flags


def test_no_commit_travels_with_the_pull_of_a_logical_queue() -> None:
    """Java's brokers would store it as an offset of the physical queue."""
    assert flags("broker-a") & 1
    assert not flags("__syslo__global__") & 1


@pytest.mark.parametrize("count", [1, 32, 33, 256])
@pytest.mark.parametrize("topic", ["orders", "100%d", '%%"queueOffset":"5"%'])
def test_a_frame_is_what_its_fields_would_be_written_as(topic: str, count: int) -> None:
    spec = PullSpec("billing", 32, 1024, expression='a = "%s" \u00fc')
    template = PullTemplate(MessageQueue(topic, "broker-a", 3), spec, 4096)
    for number, commit in ((0, CommitWithPull(False, -1)), (2**31 - 1, COMMIT)):
        numbers = template.numbers(2**40 + number, count, commit)
        written = Command.request(11, number, template.fields(numbers)).encode()
        assert template.frame(11, numbers, number) == written
