"""The values RocketMQ is made of: queues, messages, routes, names, flags.

Pure data and the small rules that belong to it. Independent of bytes, sockets and clocks.
"""
