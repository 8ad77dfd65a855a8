"""How long it all takes."""

from typing import NamedTuple


class Scale(NamedTuple):
    """How often and how long everything is measured."""

    rounds: int = 5
    seconds: float = 2.0
    warm: int = 10
    """Rounds before those that count, at most; fewer if they get no faster."""
    backlog: int = 1_600_000
    """Messages: with fewer of them the quickest pair is through before all queues are found."""
    live: int = 1000
    lead: int = 600
    """Live messages before those that count: a new consumer takes its time to find its queues."""
    live_rounds: int = 3
    drills: int = 2
    starts: int = 3
    idle: float = 10.0
    """Seconds for which idle servers are watched."""
    settle: float = 3.0
    group_rounds: int = 5
    """Each is two joins, a departure and a death, in each way to share queues."""
    group_warm: float = 60.0
    """Seconds in which servers warm up for groups that change, at most."""

    @classmethod
    def quick(cls) -> "Scale":
        """Return one that shows that everything works, and nothing else."""
        once = {"rounds": 1, "warm": 1, "live_rounds": 1, "drills": 1, "starts": 1}
        once |= {"group_rounds": 1, "live": 200, "lead": 600, "backlog": 4_000}
        return cls(**once, seconds=0.1, settle=1.5, idle=1.0, group_warm=3.0)
