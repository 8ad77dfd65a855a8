"""The health of consumer groups, from what their members tell of their rebalances.

Events (`pocketmq.RebalanceEvent` as JSON) are what it rests on; samples of the brokers' offsets add
the lag, records of what handlers were given add the duplicates. `examine` makes a report of them,
`pocketmq.pipelines.health.page` draws it. Where the observations come from stands in `observed`
(files) and `from_topics` (Spark).
"""

from pocketmq.model.queue import QueueName
from pocketmq.pipelines.health.observed import (
    DeliveryRecord,
    Observations,
    OffsetSample,
    read_deliveries,
    read_events,
    read_offsets,
)
from pocketmq.pipelines.health.report import GroupHealth, HealthReport, examine

__all__ = [
    "DeliveryRecord",
    "GroupHealth",
    "HealthReport",
    "Observations",
    "OffsetSample",
    "QueueName",
    "examine",
    "read_deliveries",
    "read_events",
    "read_offsets",
]
