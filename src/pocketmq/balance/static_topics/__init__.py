"""Static topics (5.x): a fixed number of logical queues, each a chain of ranges on brokers.

`ranges` converts offsets between a logical queue and the physical queues it consists of,
`checks` has the checks of a mapping that a broker receives, and of what all brokers say together,
`answers` what a pull is answered, and `plans` where logical queues go: when a topic is created,
gets more queues, or is moved.
"""
