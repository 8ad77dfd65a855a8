"""A member of a consumer group: subscriptions, rebalancing, its queues and offsets, start and stop.

What push, pull and POP consumers share. Independent of the kind of consumer.
"""
