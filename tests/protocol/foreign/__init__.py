"""Requests that PocketMQ neither sends nor serves, with their types, to hold them against Java.

The shipped catalogue has only their codes. `EVERY_REQUEST` is that catalogue with these rows.
"""

from pocketmq.protocol.catalogue import REQUESTS, rows_of
from tests.protocol.foreign import brokers, controller, lite, replication

FOREIGN = rows_of(brokers, controller, lite, replication)
EVERY_REQUEST = REQUESTS | FOREIGN
