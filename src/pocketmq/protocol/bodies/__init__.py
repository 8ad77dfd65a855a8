"""Every body of the protocol as a typed value, a module per feature.

Read and write them with `pocketmq.protocol.json_values`; the rows of `pocketmq.protocol.requests`
say which request and response carries which. What is not JSON has functions of its own beside it.
"""
