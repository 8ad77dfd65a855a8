"""Which RocketMQ client line to behave like: every rule and time that differs between 4.x and 5.x.

A decision takes the profile as a value, so one process can run a 4.x member and a 5.x member of
the same group. Times are seconds. Scale them with `msgspec.structs.replace`, which is what Java's
`rocketmq.client.*` system properties are for. Where all members of a group are known to release
queues at once, because all are clients of ours, Java's pauses serve no purpose; `prompt_pause`
stands in for them then (not with `JAVA_V5`). What producers do differently is a table of its own,
chosen by the profile's `line`; it is kept exactly, because operators compare: a Python producer
avoids a slow broker for as long as a Java producer of the same line does.
"""

import msgspec

from pocketmq.errors import InvalidInput, ResponseCode

SEND_TIMEOUT = 3.0
RETRIES = 2
COMPRESS_FROM = 4096
_RETRY_CODES = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    }
)


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The client line and its constants; use `V4` or `V5`, or replace single fields of one."""

    line: str
    """`"4.x"` or `"5.x"`."""

    # Same in both lines, tunable.
    rebalance_interval: float = 20.0
    pull_max_idle: float = 120.0
    """A queue whose last pull is longer ago is dropped and taken again."""
    lock_interval: float = 20.0
    lock_first_after: float = 1.0
    lock_max_age: float = 30.0
    unlock_delay: float = 20.0
    """4.x: how long a released queue with cached messages stays locked at the broker.
    5.x: the age of the last lock after which a busy queue is released by force."""
    consume_continuously: float = 60.0
    rebalance_on_route_change: bool = False
    """Java waits for its timer; a client may opt to rebalance at once."""

    # While every member of the group releases queues at once.
    looks_at_members: bool = True
    """Whether brokers are asked if that is so; else Java's times hold."""
    prompt_pause: float = 0.02
    """Stands in for `rebalance_min_interval` and `pull_start_delay` where those are longer.

    It is one time for both: an owner is that late at most, so a new one that waits as long finds
    the queue released and its offset stored."""
    prompt_pause_per_member: float = 0.0005
    """The least for each member: when many join at once, all of them ask brokers at every change,
    and this bounds how often they do so together, however large the group is."""

    # When to rebalance.
    rebalance_min_interval: float
    unbalanced_interval: float
    """The wait after a run that did not reach its target."""
    lock_denied_interval: float | None
    """Seconds until the next rebalance after a denied lock; None leaves it to the timer."""
    start_needs_heartbeat: bool
    """Whether the first rebalance waits for a heartbeat that reached a broker."""
    start_failure_stops: bool
    channel_active_heartbeat: bool
    """Whether a fresh connection to a broker causes a heartbeat and a rebalance."""

    # What a rebalance does.
    server_assignment: bool
    """Whether brokers may make the assignment (QUERY_ASSIGNMENT)."""
    broadcasting_locks: bool
    drop_before_release: bool
    """Whether all lost queues are dropped before the first is released, or one after another."""
    pull_start_delay: float
    """Seconds between taking a queue and its first pull, for its last owner to release it."""
    missing_route_notifies: bool
    push_listener: bool
    """Whether push consumers notify a listener of changed queues."""

    # Releasing a queue of an orderly consumer.
    release_wait: float
    """Seconds to wait for a running handler."""
    release_by_force: bool

    # Offsets.
    refusal_means_no_offset: bool
    """Whether any refusal of QUERY_CONSUMER_OFFSET counts as 'no offset stored'."""
    offset_illegal_delay: float
    offset_illegal_freezes: bool
    offset_illegal_rebalances: bool

    # Consuming.
    send_back_checks_cache: bool
    """Whether a failed message that was removed meanwhile is not sent back."""
    exhausted_reconsume_step: int
    """Added to the reconsume count of an orderly message that goes to the retry topic."""
    lite_pull_marks_pull: bool

    def pause_among(self, members: int) -> float:
        """Return the pause in a group of `members` that all release queues at once."""
        return max(self.prompt_pause, self.prompt_pause_per_member * members)


V4 = Profile(
    line="4.x",
    rebalance_min_interval=0.0,
    unbalanced_interval=20.0,
    lock_denied_interval=None,
    start_needs_heartbeat=False,
    start_failure_stops=False,
    channel_active_heartbeat=False,
    server_assignment=False,
    broadcasting_locks=True,
    drop_before_release=False,
    pull_start_delay=0.0,
    missing_route_notifies=False,
    push_listener=False,
    release_wait=1.0,
    release_by_force=False,
    refusal_means_no_offset=True,
    offset_illegal_delay=10.0,
    offset_illegal_freezes=False,
    offset_illegal_rebalances=False,
    send_back_checks_cache=False,
    exhausted_reconsume_step=0,
    lite_pull_marks_pull=False,
)
V5 = Profile(
    line="5.x",
    rebalance_min_interval=1.0,
    unbalanced_interval=1.0,
    lock_denied_interval=0.5,
    start_needs_heartbeat=True,
    start_failure_stops=True,
    channel_active_heartbeat=True,
    server_assignment=True,
    broadcasting_locks=False,
    drop_before_release=True,
    pull_start_delay=0.5,
    missing_route_notifies=True,
    push_listener=True,
    release_wait=0.5,
    release_by_force=True,
    refusal_means_no_offset=False,
    offset_illegal_delay=0.0,
    offset_illegal_freezes=True,
    offset_illegal_rebalances=True,
    send_back_checks_cache=True,
    exhausted_reconsume_step=1,
    lite_pull_marks_pull=True,
)
JAVA_V5 = msgspec.structs.replace(V5, looks_at_members=False)
"""5.x with Java's pauses in groups of any members, to compare with."""


class ProducerRules(msgspec.Struct, frozen=True, kw_only=True):
    """What one client line does with slow brokers and with failed tries. Times are seconds."""

    pauses: tuple[tuple[float, float], ...]
    """Pairs of a latency and the pause after it, slowest first; faster brokers get none."""
    isolation_latency: float
    """The latency a failed try counts as."""
    pause_only_extends: bool
    """Whether a shorter pause, or none, leaves a longer one in place."""
    tracks_reachability: bool
    client_error_isolates: bool
    """Whether a broker is blamed when only its address is unknown."""
    retry_codes: frozenset[int]
    """The refusals after which a synchronous send asks another broker."""

    def pause_for(self, latency: float) -> float:
        """Return for how long a broker is avoided after a response this slow."""
        for slow_from, pause in self.pauses:
            if latency >= slow_from:
                return pause
        return 0.0


RULES: dict[str, ProducerRules] = {
    "4.x": ProducerRules(
        pauses=((15, 600), (3, 180), (2, 120), (1, 60), (0.55, 30), (0.1, 0), (0.05, 0)),
        isolation_latency=30,
        pause_only_extends=False,
        tracks_reachability=False,
        client_error_isolates=True,
        retry_codes=_RETRY_CODES,
    ),
    "5.x": ProducerRules(
        pauses=((15, 30), (5, 10), (3, 6), (1.8, 5), (0.55, 2), (0.1, 0), (0.05, 0)),
        isolation_latency=10,
        pause_only_extends=True,
        tracks_reachability=True,
        client_error_isolates=False,
        retry_codes=_RETRY_CODES | {ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY},
    ),
}


def rules_of(profile: Profile) -> ProducerRules:
    """Return the table of a profile's line. Raises `InvalidInput` for an unknown line."""
    try:
        return RULES[profile.line]
    except KeyError:
        raise InvalidInput(
            f"unknown client line {profile.line!r}; allowed are '4.x' and '5.x'"
        ) from None
