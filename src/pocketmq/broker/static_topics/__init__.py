"""Static topics on a broker: the mapping of logical queues, and requests that name them.

`table` has the mappings, `requests` creates them (513) and converts what comes for a logical queue
into what the physical queue is asked; `offsets`, `sends` and `pulls` have the conversions.
`neighbours` asks other brokers about ranges that lie there, `upkeep` drops ranges without messages.
"""
