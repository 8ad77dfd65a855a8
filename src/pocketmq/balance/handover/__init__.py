"""Hand-over of queues between members, without messages twice and almost without a pause.

A shell makes a group with `new_group(HandoverSettings(...))` and then calls
`advance(group, event, now)` for each event as it happens, on one thread; no order of events makes
it raise. The shell keeps `Advanced.group` for the next call and carries out `Advanced.instructions`
in their order. `now` is a monotonic time in seconds that never goes back. `balance_of(group)` is
what operators see.

The order of a start: listen to the bus of each broker, heartbeat, `Routed`, `Started`; then
`Listed` whenever members were asked for or a broker notifies. A `Heard` is reported for every
message of a notice whose sender or boot is another one. After `Leave` no event has an effect.

| module | owns |
|---|---|
| `messages` | what members tell each other |
| `events`, `instructions` | what the machine is told, and what it wants done |
| `settings` | who the member is; times |
| `machine` | `new_group`, `advance`: which part of the machine an event concerns |
| `group` | the values; the scratch pad of one event |
| `table` | who is listed, gone, silent, leaving; what members reported |
| `reach` | brokers that some members cannot reach, and who takes their queues there |
| `targets`, `decisions` | who shall have which queue; claims, orphans, releases |
| `giving`, `taking` | in which order a queue changes hands: its owner's half, and its heir's |
| `stay`, `steps` | one queue at one member: the value, and the steps that all ways have in common |
| `tail`, `leases`, `queue` | the other steps of one queue; the model checks them all |
| `upkeep` | timers, renewals, states sent |
| `view` | `balance_of` |
"""

from pocketmq.balance.handover.group import Advanced, HandoverGroup
from pocketmq.balance.handover.machine import advance, new_group
from pocketmq.balance.handover.messages import is_ours, lock_owner
from pocketmq.balance.handover.settings import HandoverSettings, HandoverTimes
from pocketmq.balance.handover.view import balance_of

__all__ = [
    "Advanced",
    "HandoverGroup",
    "HandoverSettings",
    "HandoverTimes",
    "advance",
    "balance_of",
    "is_ours",
    "lock_owner",
    "new_group",
]
