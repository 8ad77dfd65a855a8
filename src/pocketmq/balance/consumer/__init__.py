"""What a consumer decides: which queues it owns, where it starts, when it pulls, what it commits.

Facts in, instructions out. A shell gathers the facts (routes, member ids, locks, offsets, times),
calls these functions and carries out what they return; nothing here waits, sends or reads a clock.

| module | decides |
|---|---|
| `facts` | what a member gathers before a rebalance, and what follows when its queues changed |
| `rebalance` | the target of one topic, by strategy or from a broker |
| `round` | one rebalance of one topic step by step, from revoking to notifying |
| `locks` | lock renewal of orderly consumers, and lost locks |
| `release` | how a revoked queue is released: its offset, then its lock |
| `offsets` | where a new queue starts, offsets between two commits, resets |
| `schedule`, `lifecycle` | when to rebalance; what start and stop do, in order |
| `process_queue`, `limits` | the cache of one queue and what may be committed; flow control |
| `offset_runs` | nothing: how that cache keeps messages by offset |
| `pulling`, `lite_pull`, `popping` | whether to fetch now, and what an answer means |
| `handling`, `concurrent`, `orderly` | what a handler's result means; overdue messages |
| `instructions` | the values that most decisions return |
"""
