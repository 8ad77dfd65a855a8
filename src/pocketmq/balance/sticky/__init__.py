"""STICKY: the even assignment of all topics' queues that moves the fewest of them.

| module | decides |
|---|---|
| `assignment` | `assign`: the owner of every queue; `minimum_moves`: how many had to move |
| `shares` | the members' numbers of queues, on numbers alone |
| `extras` | which members get one queue more of which topic: the exact optimum, by min-cost flow |
| `strategy` | `Sticky`: what options and commands name; `assign_mixed`: beside foreign members |
| `scores` | the fixed hashes that decide between equally good assignments |

The members' numbers of queues differ by one at most, in every topic and over all topics. Unlike
Java's strategies it depends on the assignment before, so members that see different states on the
way must still come to the same result. They do, and `assignment` explains why.
"""

from pocketmq.balance.sticky.assignment import Topics, assign, minimum_moves
from pocketmq.balance.sticky.shares import TopicCount, shares
from pocketmq.balance.sticky.strategy import Division, Sticky, assign_mixed, divide

__all__ = [
    "Division",
    "Sticky",
    "TopicCount",
    "Topics",
    "assign",
    "assign_mixed",
    "divide",
    "minimum_moves",
    "shares",
]
