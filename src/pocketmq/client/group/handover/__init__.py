"""The client side of STICKY: carries out what `balance.handover` decides.

| module | owns |
|---|---|
| `driver` | the machine of one member: events in, instructions out |
| `queues` | queues that are run, stopped, drained, fenced, dropped |
| `commits` | offsets, stored often and confirmed |
| `locks` | run and tail locks, many in one request |
| `bus` | what members tell each other, over a topic |
| `joining` | whether a member can take part at all |
"""
