"""`pocketmq`, with queue locks that end soon: what a system property does for a Java broker."""

import sys

from pocketmq.broker.balancing.queue_locks import MAX_LOCKS, GroupQueueLocks
from pocketmq.cli import main

LEASE = 8.0

if __name__ == "__main__":
    GroupQueueLocks.__init__.__defaults__ = (LEASE, MAX_LOCKS)
    sys.exit(main())
