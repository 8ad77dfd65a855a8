"""Load balancing, the heart of PocketMQ: who consumes which queue, and where a message is sent.

Pure rules: facts and times in, decisions out. Nothing here waits, sends, draws random numbers or
reads a clock, so every rule can be tested as a table, and the same code serves the client, the
broker that assigns queues itself, the admin's previews and the pipelines. Read it in this order:

| package | decides |
|---|---|
| `profile` | what differs between the client lines 4.x and 5.x: every rule and time, as one value |
| `allocation` | strategies: which member owns which queue, given the sorted queues and members |
| `sticky` | the even assignment of all topics that moves the fewest queues |
| `strategies` | all strategies by name |
| `consumer` | what a member does with its share: rebalance, locks, offsets, pulling, handlers |
| `handover` | how STICKY members hand queues over, without messages twice |
| `producer` | the queue of a message: round robin, keys, slow brokers, retries, transactions |
| `static_topics` | static topics: logical queues, their ranges on brokers, plans |
| `what_if` | what would move if a member joined, a broker failed, the strategy changed |
| `story` | what did move: a group's history from its events, or from looking at it |

A member never asks another one: all run the same strategy on the same sorted input and come to
shares that fit together. A new strategy therefore must be a pure function of that input, down to
Java's sort order (`model.java_strings`), or members of one group disagree and a queue has two
owners, or none. One that also depends on who owned what before needs more: its answer must be the
same from every state on the way to it (confluence), because members rebalance one after another and
each sees a different half-finished state. `sticky` is such a rule. Rules for handing a queue over
stand beside `consumer`, whose `round` is Java's way to do it.

Words, each with one meaning: a queue is *assigned* by a decision, *owned* while it is in a member's
table, *revoked* when a decision takes it away, *released* once its offset and lock are handed over,
*dropped* when its process queue must not be used any more. A *round* is one rebalance of one topic,
a *run* rebalances all topics, a *turn* is a producer's next step through the queues. A *room* is a
machine room, a data centre.
"""
