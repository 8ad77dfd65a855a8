"""The values RocketMQ is made of: queues, messages, routes, names, flags.

Pure data and the small rules that belong to it. Nothing here knows bytes, sockets or clocks.
"""
