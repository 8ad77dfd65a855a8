"""The POP consumer of RocketMQ 5.x: take messages, acknowledge each, hide it for longer.

The broker keeps count of who has what; no queue is assigned and no offset is kept here. A message
that is not acknowledged in time comes back.
"""
