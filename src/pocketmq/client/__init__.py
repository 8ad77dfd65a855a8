"""The clients' engine: an asyncio shell around the rules in `balance` and `protocol`.

Gathers facts, carries out instructions, keeps clocks. Timers run on the event loop's own clock,
wall time and chance come from `clock` alone, so that a loop with virtual time can drive all of it.
Independent of how brokers and name servers work inside.
"""
