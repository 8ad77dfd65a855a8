"""What `failOnDataLoss` means: messages that are gone end the query, or are skipped and logged.

Noticed in three places: an offset that an option names and its queue does not hold
(`cluster_view`), messages of a range that are gone or damaged when a task reads them (`reading`),
and queues or offsets of a checkpoint that are gone when a stream plans its next batch
(`stream_reader`).
"""

import logging

from pocketmq.errors import DataLost
from pocketmq.model import MessageQueue

logger = logging.getLogger("pocketmq.spark")


def data_lost(queue: MessageQueue, span: tuple[int, int], why: str) -> DataLost:
    """Return the error for offsets `span[0]` to `span[1]` of a queue, the second not included."""
    return DataLost(queue.topic, queue.broker_name, queue.queue_id, span, why)


def fail_or_warn(lost: DataLost, *, fail: bool) -> None:
    """Raise the loss if the query is to fail on it; else log it, and the caller skips the span."""
    if fail:
        raise lost
    logger.warning("%s", lost)
