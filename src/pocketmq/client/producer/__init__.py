"""Producers: one message or many, sent once or until the deadline.

Read in this order: `requests` (a message as bytes, an answer as a receipt), `preparing` (from what
a caller hands over to what travels), `choices` (whose queue), `publishing` (where a topic may be
written), `window` (how much at once), `sending` (one send from begin to end), `batches`, `faults`,
`hooks`, `producer` (what users see).
"""

from pocketmq.client.producer.hooks import SendContext, SendHook
from pocketmq.client.producer.producer import Producer

__all__ = ["Producer", "SendContext", "SendHook"]
