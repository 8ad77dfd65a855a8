"""The figures of one measure, and whether they reach its goals."""

from typing import NamedTuple

from benchmarks.java.goals import GOALS, NO_GOALS, Goal, Goals

PAIRS = ("Java/Java", "Java/ours", "ours/Java", "ours/ours")
"""Client and servers."""
PURE = "pure"
"""Our client at our servers, both without the native core."""
KAFKA = "Kafka"
"""confluent-kafka at a Kafka broker."""
COLUMNS = (*PAIRS, PURE, KAFKA)


class Cell(NamedTuple):
    """What one pair came to."""

    value: float
    client_cpu: float = 0.0
    """µs a message."""
    server_cpu: float = 0.0


class Verdict(NamedTuple):
    """A goal, and whether it was reached; None if that was not measured."""

    text: str
    reached: bool | None

    def __str__(self) -> str:
        return self.text + {True: " ✓", False: " ✗", None: " (not measured)"}[self.reached]


class Row(NamedTuple):
    """One measure of all pairs."""

    name: str
    unit: str
    cells: dict[str, Cell]

    @property
    def goals(self) -> Goals:
        return GOALS.get(self.name, NO_GOALS)

    def ratio(self, of: str = "ours/ours", over: str = "Java/Java") -> float | None:
        """Return the value of one pair divided by that of another, if both were measured."""
        if of not in self.cells or over not in self.cells or not self.cells[over].value:
            return None
        return self.cells[of].value / self.cells[over].value

    def verdicts(self) -> list[Verdict]:
        """Return the goals of ours/ours."""
        goals, own = self.goals, self.cells.get("ours/ours")
        return [
            *_verdict(goals.ratio, self.ratio()),
            *_verdict(goals.value, own.value if own is not None else None),
            *_verdict(goals.kafka, self.ratio(over=KAFKA)),
        ]

    def client_verdicts(self) -> list[Verdict]:
        """Return the goals of our client at Java's servers."""
        return _verdict(self.goals.client, self.ratio("ours/Java"))

    def missed(self) -> list[str]:
        """Return the goals that were not reached."""
        found = [each.text for each in self.verdicts() if each.reached is False]
        client = [each.text for each in self.client_verdicts() if each.reached is False]
        return found + [f"{text} (ours/Java)" for text in client]


def _verdict(goal: Goal | None, figure: float | None) -> list[Verdict]:
    if goal is None:
        return []
    return [Verdict(goal.text, None if figure is None else goal.reached(figure))]
