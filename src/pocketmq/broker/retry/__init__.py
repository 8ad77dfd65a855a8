"""Messages that consumers could not handle: redelivered later, then sent to the dead letters.

`rules` decides whether and when a message is redelivered; `requests` serves consumers that requeue
one.
"""
