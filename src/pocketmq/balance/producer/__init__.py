"""The producer's side of load balancing: which queue a message goes to, and what if it fails.

Read in this order: `selectors` (round robin and the caller's own choice), `fault_table` (slow and
failed brokers), `choice` (both together), `plan` (what a send is asked to do), `retry` (one try
after another), `broker_record` and `adaptive` (the choice by how brokers do now), `packing` and
`transactions` (what a message gets on the way). Everything decides; nothing sends, waits or draws
random numbers.
"""
