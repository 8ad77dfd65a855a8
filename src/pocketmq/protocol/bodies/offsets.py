"""Offsets of groups: the tables of a broker, and resets pushed to clients."""

from pocketmq.model.data_version import DataVersion
from pocketmq.model.queue import MessageQueue
from pocketmq.model.value import WireValue


class ConsumerOffsets(WireValue, frozen=True, kw_only=True):
    """Every committed offset of a broker: `topic@group` to queue id to offset."""

    offset_table: dict[str, dict[int, int]] = {}
    data_version: DataVersion | None = None


class DelayOffsets(WireValue, frozen=True, kw_only=True):
    """How far each delay level has been delivered."""

    offset_table: dict[int, int] = {}
    data_version: DataVersion | None = None


class ResetOffset(WireValue, frozen=True, kw_only=True):
    """Where a group shall go on in each queue (Java: ResetOffsetBody)."""

    offset_table: dict[MessageQueue, int] = {}

    def listed(self) -> "ListedResetOffset":
        """Give the form for callers whose language is CPP."""
        return ListedResetOffset(
            offset_table=[
                QueueOffset(
                    topic=queue.topic,
                    broker_name=queue.broker_name,
                    queue_id=queue.queue_id,
                    offset=offset,
                )
                for queue, offset in self.offset_table.items()
            ]
        )


class QueueOffset(WireValue, frozen=True, kw_only=True):
    """A queue and an offset side by side (Java: MessageQueueForC)."""

    topic: str
    broker_name: str
    queue_id: int
    offset: int = 0


class ListedResetOffset(WireValue, frozen=True, kw_only=True):
    """A reset without object keys, for C++ clients (Java: ResetOffsetBodyForC)."""

    offset_table: list[QueueOffset] = []

    def mapped(self) -> ResetOffset:
        """Give the form all other clients get."""
        return ResetOffset(
            offset_table={
                MessageQueue(each.topic, each.broker_name, each.queue_id): each.offset
                for each in self.offset_table
            }
        )


class ConsumerStatus(WireValue, frozen=True, kw_only=True):
    """Offsets as clients hold them in memory (Java: GetConsumerStatusBody).

    A client fills `message_queue_table`; a broker gathers those of all clients, by client id.
    """

    message_queue_table: dict[MessageQueue, int] = {}
    consumer_table: dict[str, dict[MessageQueue, int]] = {}


class CorrectionOffsets(WireValue, frozen=True, kw_only=True):
    """The smallest offset per queue over several groups (Java: QueryCorrectionOffsetBody)."""

    correction_offsets: dict[int, int] = {}


class OffsetMoved(WireValue, frozen=True, kw_only=True):
    """The message a broker stores when a pull asked for an offset it does not have."""

    consumer_group: str | None = None
    message_queue: MessageQueue | None = None
    offset_request: int = 0
    offset_new: int = 0
