"""The demo's closing proof: what was sent against what was consumed and what was ingested."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec


class Proof(msgspec.Struct, frozen=True):
    """The counts, and what is missing if anything is; `ingested` is None without Spark."""

    acknowledged: int
    consumed: int
    twice: int
    lost: list[int]
    ingested: int | None
    not_ingested: list[int]

    @property
    def holds(self) -> bool:
        """Whether every message that was sent was consumed, and copied if it was to be."""
        return self.acknowledged > 0 and not self.lost and not self.not_ingested

    def lines(self) -> list[str]:
        """Say it to people."""
        said = [
            f"{self.acknowledged:,} messages were sent and acknowledged",
            f"{self.consumed:,} of them were consumed, {self.twice:,} more than once",
        ]
        if self.ingested is not None:
            said.append(f"{self.ingested:,} of them are in Parquet files")
        if self.lost:
            said.append(f"LOST: {len(self.lost):,} were not consumed, such as {self.lost[:5]}")
        if self.not_ingested:
            said.append(
                f"NOT INGESTED: {len(self.not_ingested):,}, such as {self.not_ingested[:5]}"
            )
        if self.holds:
            said.append("proved: every message sent was consumed")
        return said


def prove(acknowledged: Sequence[int], consumed: Iterable[int], ingested: set[int] | None) -> Proof:
    """Compare the numbers of messages."""
    sent, times = set(acknowledged), Counter(consumed)
    return Proof(
        acknowledged=len(sent),
        consumed=len(sent & times.keys()),
        twice=sum(times[number] > 1 for number in sent),
        lost=sorted(sent - times.keys()),
        ingested=None if ingested is None else len(sent & ingested),
        not_ingested=[] if ingested is None else sorted(sent - ingested),
    )
