"""A look into a broker's consume queue, for operators."""

from pocketmq.model.subscription import Subscription
from pocketmq.model.value import WireValue


class ConsumeQueueEntry(WireValue, frozen=True, kw_only=True):
    """One entry, and whether a group's filter lets it through (Java: ConsumeQueueData)."""

    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class ConsumeQueuePage(WireValue, frozen=True, kw_only=True):
    """Some entries of a queue (Java: QueryConsumeQueueResponseBody)."""

    subscription_data: Subscription | None = None
    filter_data: str | None = None
    queue_data: list[ConsumeQueueEntry] | None = None
    max_queue_index: int = 0
    min_queue_index: int = 0
