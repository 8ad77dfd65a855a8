"""Every body of the protocol as a typed value, a module per feature.

Read and write them with `pocketmq.protocol.json_values`; `by_code` says which request and response
carries which. The few bodies that are not JSON have functions of their own beside them.
"""
