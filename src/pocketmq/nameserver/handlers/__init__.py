"""What a name server answers, by request code; a file for each kind of question.

A handler is a plain function of state, connection and request. It gives the answer, and raises
`MQError` for a refusal.
"""
