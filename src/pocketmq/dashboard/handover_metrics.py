"""Hand-overs for Prometheus: modes and states of groups, totals of what members published.

PocketMQ's own names, since Apache has no such figures. What is not known is left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client.metrics_core import Metric

from pocketmq.admin.overview import Glance
from pocketmq.admin.sticky_story import StickyStory
from pocketmq.balance.story.totals import BOUNDS, HandoverTotals
from pocketmq.model.group_balance import BalanceMode, QueueStage, handover_version


def handover_metrics(
    groups: Iterable[Glance],
    balances: Mapping[str, StickyStory] | None,
    totals: HandoverTotals | None,
) -> Iterator[Metric]:
    """Yield all families; those without a value are left out."""
    families = (*_modes(groups), *_balances(balances or {}), *_totals(totals))
    yield from (family for family in families if family.samples)


def _modes(groups: Iterable[Glance]) -> Iterator[Metric]:
    mode = Metric("pocketmq_group_balance_mode", "How members share queues, by their ids", "gauge")
    members = Metric("pocketmq_group_members", "Members that hand queues over, or not", "gauge")
    for glance in groups:
        if not glance.members:
            continue
        kinds = Counter([_hands_over(each.client_id) for each in glance.members])
        for hands_over, number in sorted(kinds.items()):
            labels = {"consumer_group": glance.group, "handover": str(hands_over).lower()}
            members.add_sample(members.name, labels, number)
        found = (
            BalanceMode.MIXED if len(kinds) > 1 else
            BalanceMode.STICKY if kinds[True] else BalanceMode.JAVA
        )  # fmt: skip
        mode.add_sample(mode.name, {"consumer_group": glance.group, "mode": found.value}, 1)
    yield mode
    yield members


def _hands_over(client_id: str | None) -> bool:
    return handover_version(client_id or "") is not None


def _balances(balances: Mapping[str, StickyStory]) -> Iterator[Metric]:
    stages = Metric("pocketmq_group_queue_stage", "Queues in a stage of a hand-over", "gauge")
    moves = Metric("pocketmq_group_moves_to_go", "Queues that still have to move", "gauge")
    for group, story in sorted(balances.items()):
        if story.moves is not None:
            moves.add_sample(moves.name, {"consumer_group": group}, story.moves)
        for stage in QueueStage:
            if stage is not QueueStage.RUNNING:
                labels = {"consumer_group": group, "stage": stage.value.replace(" ", "_")}
                stages.add_sample(stages.name, labels, story.stages.get(stage.value, 0))
    yield stages
    yield moves


def _totals(totals: HandoverTotals | None) -> Iterator[Metric]:
    if totals is None:
        return
    count = Metric("pocketmq_handovers", "Queues that members took, and locks lost", "counter")
    for (group, kind), number in sorted(totals.kinds.items()):
        labels = {"consumer_group": group, "kind": kind}
        count.add_sample("pocketmq_handovers_total", labels, number)
    yield count
    name = "pocketmq_handover_seconds"
    pauses = Metric(name, "Time without an owner of queues that were handed over", "histogram")
    for group, histogram in sorted(totals.pauses.items()):
        labels = {"consumer_group": group}
        sums = list(accumulate(histogram.buckets))
        for bound, number in zip((*map(str, BOUNDS), "+Inf"), sums, strict=True):
            pauses.add_sample(f"{name}_bucket", labels | {"le": bound}, number)
        pauses.add_sample(f"{name}_count", labels, sums[-1])
        pauses.add_sample(f"{name}_sum", labels, histogram.seconds)
    yield pauses
    two = Metric("pocketmq_handover_two_owners_seconds", "Time with two owners", "counter")
    for group, seconds in sorted(totals.two_owners.items()):
        two.add_sample(f"{two.name}_total", {"consumer_group": group}, seconds)
    yield two
