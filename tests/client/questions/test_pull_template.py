"""The fields of pulls that a consumer sends again and again."""

from pocketmq.balance.consumer.pulling import CommitWithPull
from pocketmq.client.questions.pulling import PullSpec, PullTemplate
from pocketmq.model import MessageQueue

COMMIT = CommitWithPull(True, 7)


def flags(broker: str) -> int:
    template = PullTemplate(MessageQueue("orders", broker, 0), PullSpec("billing", 32))
    return int(template.fields(9, 32, COMMIT)["sysFlag"])


def test_no_commit_travels_with_the_pull_of_a_logical_queue() -> None:
    """Java's brokers would store it as an offset of the physical queue."""
    assert flags("broker-a") & 1
    assert not flags("__syslo__global__") & 1
