"""The health of consumer groups, from the rebalance events of their members.

Events (`pocketmq.RebalanceEvent` as JSON) are required; samples of the brokers' offsets add the
lag, records of deliveries to handlers add the duplicates. `observed` reads them from files, topics
or running brokers, `examine` makes a report of them, `pocketmq.pipelines.health.page` renders it.
"""

from pocketmq.model import QueueName
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
