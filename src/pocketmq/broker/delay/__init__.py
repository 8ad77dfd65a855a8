"""Messages with a delay level.

A delayed message waits in a queue of its level (`rules`). `delays` has the timer, `delivery` moves
what is due to the topic it was sent to, `progress` saves how far each level is, and finds that
again.
"""
