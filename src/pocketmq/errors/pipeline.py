"""Reading and writing topics in bulk: options that cannot work, data that is gone."""

from pocketmq.errors.invalid import InvalidInput
from pocketmq.errors.tree import MQError


class OptionInvalid(InvalidInput):
    """An option of a data source that cannot work; `option` is its name."""

    def __init__(self, option: str, reason: str) -> None:
        self.option = option
        self.reason = reason
        super().__init__(f"option {option!r} {reason}")


class DataLost(MQError):
    """Messages that were to be read are not there any more, or their queue is gone.

    `first` and `end` are the offsets that cannot be read; `end` is not among them.
    """

    def __init__(
        self, topic: str, broker: str, queue_id: int, span: tuple[int, int], why: str
    ) -> None:
        self.topic = topic
        self.broker = broker
        self.queue_id = queue_id
        self.first, self.end = span
        self.why = why
        what = f"offsets {self.first} to {self.end - 1}" if self.end > self.first else "messages"
        super().__init__(
            f"{what} of queue {queue_id} of topic {topic!r} on broker {broker!r} cannot be read: "
            f"{why}; with failOnDataLoss=false the stream goes on without them"
        )
