"""The client side of STICKY: carries out what `balance.handover` decides.

| module | owns |
|---|---|
| `driver` | the machine of one member: events in, instructions out |
| `queues` | queues that are run, stopped, drained, fenced, dropped |
| `requests` | what the machine asks brokers, with an answer whatever happens; locks, many at once |
| `listing` | the members of the group, the queues of all topics |
| `story` | what is told to listeners, history and log |
| `bus`, `ages` | what members tell each other, over a topic; how long ago |
| `joining` | whether a member can take part at all |
"""
