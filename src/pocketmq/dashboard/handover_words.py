"""Hand-overs in plain words: modes, states of queues, and what they mean. Pure."""

from collections.abc import Mapping

from pocketmq.admin.sticky_story import StickyStory
from pocketmq.model import BalanceMode, QueueStage

MOST_NAMED = 5
"""Members named in a sentence."""
STATES = {
    QueueStage.FENCED: "fenced: its owner's lease may have expired, nothing starts or is committed",
    QueueStage.FILLING_HOLE: "filling hole: the new owner handles messages that the failed owner "
    "left unfinished",
    QueueStage.BEHIND_BARRIER: "behind barrier: handled, committed when the previous owner "
    "has finished",
    QueueStage.DRAINING: "draining: the previous owner finishes its last messages",
    QueueStage.TAKING: "being taken: the new owner requests the locks and reads the offset",
    QueueStage.CLAIMED: "claimed: requested from its owner",
    QueueStage.WANTED: "wanted: waits for its owner or its locks",
}
"""The states that a legend explains, the most urgent first; plain running has no mark."""


def mode_name(story: StickyStory | None) -> str:
    """Return the mode of a group as a tile shows it."""
    return "as in Java" if story is None or story.mode is BalanceMode.JAVA else story.mode.value


def mode_note(story: StickyStory | None) -> str:
    """Return what is below the mode in a tile."""
    if story is None or story.mode is BalanceMode.JAVA:
        return ""
    if story.moves is None:
        return "balance unknown"
    if story.balanced:
        return "balanced"
    return f"{story.moves} to move" if story.moves else f"{story.unowned} to take"


def mode_words(story: StickyStory) -> list[str]:
    """Return in sentences how a group shares queues, and why not otherwise."""
    words = {
        BalanceMode.STICKY: "Every member hands queues over: no message is handled twice when a "
        "queue moves, and the fewest queues move.",
        BalanceMode.MIXED: f"{_named(story.foreign)} "
        f"{'does' if len(story.foreign) == 1 else 'do'} not hand over and keep"
        f"{'s' if len(story.foreign) == 1 else ''} what {story.foreign_strategy or 'AVG'} assigns; "
        "the other members divide the rest and hand over among themselves.",
        BalanceMode.JAVA: "Queues change hands as in Java.",
    }
    told = [words[story.mode]]
    reasons: dict[str, list[str]] = {}
    for member, reason in story.reasons.items():
        reasons.setdefault(reason, []).append(member)
    told += [f"{_named(tuple(members))}: {reason}" for reason, members in reasons.items()]
    return told[: MOST_NAMED + 1]


def state_of(stages: Mapping[str, QueueStage]) -> QueueStage | None:
    """Return the state that a queue is marked with: the most urgent of its members' stages."""
    found = set(stages.values())
    return next((stage for stage in STATES if stage in found), None)


def state_text(stages: Mapping[str, QueueStage]) -> str:
    """Return the states of a queue with their members; empty if it is simply running."""
    return ", ".join(
        f"{stage.value} ({member})"
        for member, stage in stages.items()
        if stage is not QueueStage.RUNNING
    )


def _named(members: tuple[str, ...]) -> str:
    more = len(members) - MOST_NAMED
    return ", ".join(members[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
