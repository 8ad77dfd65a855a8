"""Settings of the hand-over: who the member is, and its times in seconds."""

import msgspec

from pocketmq.balance.allocation import Average, Strategy
from pocketmq.balance.handover.messages import lock_owner


class HandoverTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times of the protocol; all members of a group should have the same."""

    gather: float = 0.02
    """How long changes are gathered before they are told."""
    know_others: float = 1.0
    """How long a joiner waits for the others' states."""
    claim_again: float = 0.5
    """When an unanswered claim is repeated; the pause doubles each time, up to `slow_retry`."""
    lock_given: float = 0.2
    """How long an heir tries to get the lock that was given to it."""
    lock_given_again: float = 0.01
    retry: float = 0.1
    """The first pause after a refused lock or a failed request; it doubles up to `slow_retry`."""
    slow_retry: float = 5.0
    poll_barrier: float = 0.1
    lease: float = 60.0
    """How long a broker keeps a lock after the last request for it."""
    renew_every: float = 5.0
    fence_after: float = 15.0
    """Seconds since the last granted lock request was sent, after which a queue is fenced."""
    beacon: float = 20.0
    silent: float = 45.0
    """A listed member without a word for this long counts as hung."""
    gone_names: float = 90.0
    """How long locks are freed in the names of those that are gone; leases end after 60."""
    after_foreign: float = 0.5
    """How long to wait before a queue is taken that a foreign member had; it may let go late."""
    absent_broker: float = 60.0
    """How long queues of a broker without a route keep their owners."""
    seize_drained: float = 15.0
    """How long heirs wait for the lease of a member that is gone where order must be kept."""
    first_recheck: float = 1.0
    recheck: float = 20.0


class HandoverSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who the member is, and how it hands queues over."""

    group: str
    client_id: str
    boot: str
    """A random id of this start of the process; part of the lock owner's name."""
    overlap: bool = True
    """The heir starts while the giver finishes. False (orderly and pull consumers): it waits."""
    settle: float = 0.2
    """Seconds after the last join before queues are claimed."""
    drain_wait: float = 60.0
    """How long the messages in flight of a given queue may take."""
    return_within: float = 0.0
    """How long the queues wait for this member after a graceful stop."""
    mixed: Strategy = Average()
    """The strategy of foreign members."""
    times: HandoverTimes = HandoverTimes()

    @property
    def owner(self) -> str:
        """The name under which this member locks."""
        return lock_owner(self.client_id, self.boot)
