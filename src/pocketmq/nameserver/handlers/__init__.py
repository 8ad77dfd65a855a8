"""The handlers of a name server's requests, by who sends them.

A handler is a plain function of state, connection and request. It returns the answer, and raises
`MQError` for a refusal.
"""
