"""The producer's side of load balancing: which queue a message goes to, and what if it fails.

Read in this order: `round_robin` (whose turn), `fault_table` (who is slow), `choice` (both
together), `selectors` (the caller's own choice), `retry` (one try after another), `rules` (what
4.x and 5.x do differently). Everything decides; nothing sends, waits or draws random numbers.
"""
