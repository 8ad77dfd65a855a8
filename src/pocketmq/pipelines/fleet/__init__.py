"""What-if for a whole estate: every group under every strategy, event after event.

`fleet` is the entry point. Every number is computed by `pocketmq.balance.what_if`. `estate` defines
and reads estates, `events` says what may happen to them, `part` computes a part of one, `report`
sums up.
"""

from pocketmq.pipelines.fleet.estate import (
    Estate,
    Group,
    cluster_estate,
    read_estate,
    uniform_estate,
)
from pocketmq.pipelines.fleet.events import (
    AddBroker,
    AddQueues,
    FleetEvent,
    Join,
    Leave,
    LoseBroker,
    SwitchTo,
)
from pocketmq.pipelines.fleet.report import FleetReport, StepSummary, StrategySummary
from pocketmq.pipelines.fleet.running import fleet

__all__ = [
    "AddBroker",
    "AddQueues",
    "Estate",
    "FleetEvent",
    "FleetReport",
    "Group",
    "Join",
    "Leave",
    "LoseBroker",
    "StepSummary",
    "StrategySummary",
    "SwitchTo",
    "cluster_estate",
    "fleet",
    "read_estate",
    "uniform_estate",
]
