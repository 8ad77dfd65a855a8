"""What a consumer decides: which queues it holds, where it starts, when it pulls, what it commits.

Facts in, instructions out. A shell gathers the facts (routes, member ids, locks, offsets, times),
calls these rooms and carries out what they return; nothing here waits, sends or reads a clock.

| room | decides |
|---|---|
| `rebalance`, `assignment` | the target of one topic, by strategy or from a broker |
| `round` | one rebalance of one topic step by step, from revoking to notifying |
| `release` | how a revoked queue is let go |
| `start_offset` | where a new queue starts |
| `change` | what follows when the held queues changed |
| `schedule`, `lifecycle` | when to rebalance; what start and stop do, in order |
| `process_queue`, `expiry` | the cache of one queue and what may be committed; overdue messages |
| `pulling`, `lite_pull` | whether to pull now, and what a pull's answer means |
| `handling`, `concurrent`, `orderly` | what a handler's answer means |
| `locks`, `offset_table`, `reset`, `limits` | lock renewal, offsets in memory, reset, thresholds |
"""
