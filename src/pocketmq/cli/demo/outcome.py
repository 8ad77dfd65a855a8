"""What the demo ends with: the proof, and its groups side by side. Pure.

The proof: nothing lost, and nothing twice with STICKY but by crashes. The comparison: what the
same changes cost with each strategy, as rows and as a section of the report's page.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from statistics import median

import msgspec

from pocketmq.cli.demo.member import COMMIT_INTERVAL, PERSIST_INTERVAL
from pocketmq.cli.demo.repeats import Crashes, DemoDelivery, Repeats, repeats_of
from pocketmq.pipelines.health import GroupHealth
from pocketmq.pipelines.health.figures import quantiles

STICKY = "STICKY"
FAILED = ("LOST", "TWICE", "NOT INGESTED", "NOT PROVED")
"""How lines begin that say why something is not proved."""


class GroupProof(msgspec.Struct, frozen=True):
    """What one group consumed, missed and got more than once."""

    strategy: str
    consumed: int
    lost: list[int]
    repeats: Repeats

    @property
    def unexcused(self) -> int:
        """The number of messages twice that STICKY promises not to give; 0 for others."""
        return len(self.repeats.by_handover) if self.strategy == STICKY else 0

    def line(self) -> str:
        """Return the counts as a sentence."""
        return (
            f"{self.consumed:,} of them were consumed with {self.strategy}; "
            f"{self.repeats.total:,} deliveries were repeats"
        )


class Proof(msgspec.Struct, frozen=True):
    """The counts of messages and those missing, if any; `ingested` is None without Spark."""

    acknowledged: int
    groups: list[GroupProof]
    stored_twice: int
    ingested: int | None
    not_ingested: list[int]

    @property
    def nothing_lost(self) -> bool:
        """Whether every message sent was consumed by each group, and copied if Spark took part."""
        lost = any(group.lost for group in self.groups)
        return self.acknowledged > 0 and bool(self.groups) and not lost and not self.not_ingested

    @property
    def nothing_twice(self) -> bool:
        """Whether STICKY gave no message twice that no crash explains."""
        return not any(group.unexcused for group in self.groups)

    @property
    def holds(self) -> bool:
        """Whether all of it is proved."""
        return self.nothing_lost and self.nothing_twice

    def lines(self) -> list[str]:
        """Return the result as sentences; what is proved is at the end."""
        said = [f"{self.acknowledged:,} messages were sent and acknowledged"]
        if self.stored_twice:
            said.append(f"{self.stored_twice:,} of them were stored twice, by a producer's retry")
        said += [group.line() for group in self.groups]
        if self.ingested is not None:
            said.append(f"{self.ingested:,} of them are in Parquet files")
        for group in self.groups:
            if lost := group.lost:
                said.append(
                    f"LOST: {len(lost):,} were not consumed with {group.strategy}, such as "
                    f"{lost[:5]}"
                )
            if group.unexcused:
                said.append(
                    f"TWICE: {group.unexcused:,} with {group.strategy} without a crash, such as "
                    f"{group.repeats.by_handover[0]}"
                )
        if self.not_ingested:
            said.append(
                f"NOT INGESTED: {len(self.not_ingested):,}, such as {self.not_ingested[:5]}"
            )
        if not self.acknowledged:
            said.append("NOT PROVED: no message was sent")
        return said + self._proved()

    def _proved(self) -> list[str]:
        proved = []
        if self.nothing_lost:
            proved.append("proved: every message sent was consumed")
        for group in self.groups:
            if group.strategy == STICKY and group.consumed and not group.unexcused:
                but = _excused(group.repeats)
                text = f"proved: {STICKY} delivered no message twice"
                proved.append(text + (f" except {but}" * bool(but)))
        return proved


def prove(
    acknowledged: Sequence[int],
    given: Mapping[str, Sequence[DemoDelivery]],
    crashes: Crashes,
    ingested: set[int] | None,
) -> Proof:
    """Compare the messages sent with those that the group of each strategy got, and ingested."""
    sent = set(acknowledged)
    places: dict[int, set[tuple[str, int, int]]] = defaultdict(set)
    for deliveries in given.values():
        for one in deliveries:
            places[one.number].add((one.broker, one.queue, one.offset))
    groups = []
    for strategy, deliveries in given.items():
        got = {one.number for one in deliveries}
        uncommitted = COMMIT_INTERVAL if strategy == STICKY else PERSIST_INTERVAL
        repeats = repeats_of(deliveries, crashes, uncommitted)
        groups.append(GroupProof(strategy, len(sent & got), sorted(sent - got), repeats))
    return Proof(
        acknowledged=len(sent),
        groups=groups,
        stored_twice=sum(len(places[number]) > 1 for number in sent & places.keys()),
        ingested=None if ingested is None else len(sent & ingested),
        not_ingested=[] if ingested is None else sorted(sent - ingested),
    )


def _excused(repeats: Repeats) -> str:
    causes = {
        "in flight when a member was killed": len(repeats.by_member),
        "whose offsets a killed broker had not saved": len(repeats.by_broker),
    }
    return " and ".join(f"{count:,} {cause}" for cause, count in causes.items() if count)


class GroupResult(msgspec.Struct, frozen=True):
    """What was seen of the group with one strategy."""

    strategy: str
    health: GroupHealth
    repeats: Repeats
    waits: list[float]
    """How long messages waited for their first delivery, in seconds."""
    since: float = 0.0
    """When both groups had formed: what was before depends on which member came first."""


ROWS = (
    "queues moved",
    "  more than the minimum",
    "moved queue without owner, p50",
    "moved queue without owner, longest",
    "time with two owners",
    "wait of a message for its handler, p50",
    "wait of a message for its handler, longest",
    "messages twice",
    "  when queues moved",
    "  not committed by a killed member",
    "  not saved by a killed broker",
    "lag (messages not committed), median",
    "lag, largest",
    "lag, at the end",
)
"""What is compared; `–` where it was not measured."""


def compared(results: Sequence[GroupResult]) -> list[tuple[str, ...]]:
    """Return the rows of the comparison: what, and its value for each strategy."""
    values = [_values(result) for result in results]
    return [(name, *cells) for name, *cells in zip(ROWS, *values, strict=True)]


def comparison_html(results: Sequence[GroupResult]) -> str:
    """Return the comparison as a section of the report's page."""
    heads = "".join(f'<th class="n">{escape(result.strategy)}</th>' for result in results)
    rows = "".join(
        f"<tr>{_name_html(name)}"
        + "".join(f'<td class="n">{escape(value)}</td>' for value in cells)
        + "</tr>"
        for name, *cells in compared(results)
    )
    return (
        "<section><h2>Side by side</h2>"
        '<p class="soft">Both groups consumed one topic; in both, members joined, left and were '
        "killed at the same times. Counted since both had formed; times of queues are those that "
        "members recorded.</p>"
        f'<div class="wide"><table style="width:auto"><tr><th></th>{heads}</tr>{rows}</table></div>'
        "</section>"
    )


def _name_html(name: str) -> str:
    part_of_the_line_above = ' style="padding-left:1.4em"' if name.startswith(" ") else ""
    return f"<td{part_of_the_line_above}>{escape(name.strip())}</td>"


def _values(result: GroupResult) -> tuple[str, ...]:
    health, repeats, since = result.health, result.repeats, result.since
    moves = [move for move in health.handovers if move.at >= since]
    had_to = sum(one.minimum for one in health.rebalances if one.since >= since)
    shared = [span for queue in health.queues for span in queue.shared]
    pause, wait = quantiles(move.pause for move in moves), quantiles(result.waits)
    lag = [] if health.lag is None else [at.lag for at in health.lag.points if at.time >= since]
    return (
        f"{len(moves):,}",
        f"{max(0, len(moves) - had_to):,}",
        _milliseconds(None if pause is None else pause.p50),
        _milliseconds(None if pause is None else pause.longest),
        _milliseconds(sum(max(0.0, until - max(began, since)) for began, until in shared)),
        _milliseconds(None if wait is None else wait.p50),
        _milliseconds(None if wait is None else wait.longest),
        f"{repeats.total:,}",
        f"{len(repeats.by_handover):,}",
        f"{len(repeats.by_member):,}",
        f"{len(repeats.by_broker):,}",
        f"{median(lag):,.0f}" if lag else "–",
        f"{max(lag):,}" if lag else "–",
        f"{lag[-1]:,}" if lag else "–",
    )


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:,.0f} ms"
