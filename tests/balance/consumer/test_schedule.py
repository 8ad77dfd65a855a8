"""When a client rebalances, as stories of events with their times."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.consumer.instructions import Instruction, SendHeartbeats, SendHeartbeatTo
from pocketmq.balance.consumer.schedule import (
    BrokerChannelActive,
    ChannelHeartbeatSent,
    ConsumerStarted,
    FetchRoutes,
    IdsChanged,
    Paused,
    RebalanceRequested,
    RebalanceSchedule,
    RebalanceTimerElapsed,
    Resumed,
    RouteChanged,
    RunFinished,
    RunRebalance,
    ScheduleEvent,
    SetRebalanceTimer,
    Stopped,
    SubscriptionChanged,
    advance,
    new_schedule,
)
from pocketmq.balance.profile import JAVA_V5, V4, V5, Profile

RUN = RunRebalance()
Story = list[tuple[float, ScheduleEvent, list[Instruction]]]

STORIES: dict[str, tuple[Profile, Story]] = {
    "4.x runs at start, then every 20 s": (
        V4,
        [
            (0.1, ConsumerStarted(), [RUN]),
            (0.3, RunFinished(True), [SetRebalanceTimer(20.3)]),
            (20.3, RebalanceTimerElapsed(), [RUN]),
            (20.5, RunFinished(False), [SetRebalanceTimer(40.5)]),
        ],
    ),
    "5.x runs a second after the client was made, then every 20 s": (
        V5,
        [
            (0.1, ConsumerStarted(), [SetRebalanceTimer(1.0)]),
            (1.0, RebalanceTimerElapsed(), [RUN]),
            (1.2, RunFinished(True), [SetRebalanceTimer(21.2)]),
            (21.2, RebalanceTimerElapsed(), [RUN]),
        ],
    ),
    "5.x with turns as often as they may be begins with the first of them": (
        msgspec.structs.replace(V5, rebalance_interval=1.0),
        [
            (0.1, ConsumerStarted(), [SetRebalanceTimer(1.0)]),
            (1.0, RebalanceTimerElapsed(), [RUN]),
            (1.2, RunFinished(True), [SetRebalanceTimer(2.2)]),
        ],
    ),
    "5.x runs right after its heartbeat where all members are prompt": (
        V5,
        [
            (0.01, ConsumerStarted(pause=0.05), [RUN]),
            (0.12, RunFinished(True, pause=0.05), [SetRebalanceTimer(20.12)]),
        ],
    ),
    "5.x with Java's pauses does not ask whether they are, and waits": (
        JAVA_V5,
        [(0.1, ConsumerStarted(), [SetRebalanceTimer(1.0)])],
    ),
    "prompt members fold a burst of notifications into a run each 0.05 s": (
        V5,
        [
            (5.0, ConsumerStarted(pause=0.05), [RUN]),
            (5.01, IdsChanged(), []),
            (5.5, RunFinished(True, pause=0.05), [SetRebalanceTimer(5.55)]),
            (5.52, IdsChanged(), []),
            (5.55, RebalanceTimerElapsed(), [RUN]),
            (5.6, RunFinished(True, pause=0.05), [SetRebalanceTimer(25.6)]),
            (5.7, IdsChanged(), [RUN]),
        ],
    ),
    "the second is back as soon as another member is found": (
        V5,
        [
            (5.0, ConsumerStarted(pause=0.05), [RUN]),
            (5.02, RunFinished(True, pause=None), [SetRebalanceTimer(25.02)]),
            (5.2, IdsChanged(), [SetRebalanceTimer(6.02)]),
            (6.02, RebalanceTimerElapsed(), [RUN]),
            (6.03, RunFinished(True, pause=0.05), [SetRebalanceTimer(26.03)]),
            (6.1, IdsChanged(), [RUN]),
        ],
    ),
    "a prompt member of 4.x runs at every wake-up, as any": (
        V4,
        [
            (1.0, ConsumerStarted(pause=0.05), [RUN]),
            (1.1, RunFinished(True, pause=0.05), [SetRebalanceTimer(21.1)]),
            (1.1, IdsChanged(), [RUN]),
        ],
    ),
    "prompt members without a heartbeat wait for their timer, too": (
        V5,
        [(0.1, ConsumerStarted(heartbeat_sent=False, pause=0.05), [SetRebalanceTimer(20.0)])],
    ),
    "5.x comes back after a second until it is balanced": (
        V5,
        [
            (2.0, ConsumerStarted(), [RUN]),
            (2.5, RunFinished(False), [SetRebalanceTimer(3.5)]),
            (3.5, RebalanceTimerElapsed(), [RUN]),
            (3.6, RunFinished(False), [SetRebalanceTimer(4.6)]),
            (4.6, RebalanceTimerElapsed(), [RUN]),
            (4.7, RunFinished(True), [SetRebalanceTimer(24.7)]),
        ],
    ),
    "5.x without a heartbeat waits for its timer": (
        V5,
        [
            (0.1, ConsumerStarted(heartbeat_sent=False), [SetRebalanceTimer(20.0)]),
            (20.0, RebalanceTimerElapsed(), [RUN]),
        ],
    ),
    "4.x does not look at the heartbeat": (
        V4,
        [(0.1, ConsumerStarted(heartbeat_sent=False), [RUN])],
    ),
    "4.x runs for every notification, once for those during a run": (
        V4,
        [
            (1.0, IdsChanged(), [RUN]),
            (1.1, IdsChanged(), []),
            (1.2, IdsChanged(), []),
            (1.3, RunFinished(True), [RUN]),
            (1.4, RunFinished(True), [SetRebalanceTimer(21.4)]),
        ],
    ),
    "5.x folds a burst of notifications into one run a second after the last": (
        V5,
        [
            (5.0, IdsChanged(), [RUN]),
            (5.1, IdsChanged(), []),
            (5.2, RunFinished(True), [SetRebalanceTimer(6.2)]),
            (5.3, IdsChanged(), []),
            (5.9, IdsChanged(), []),
            (6.2, RebalanceTimerElapsed(), [RUN]),
            (6.3, RunFinished(True), [SetRebalanceTimer(26.3)]),
        ],
    ),
    "a timer that fires early is set again": (
        V5,
        [
            (0.1, ConsumerStarted(), [SetRebalanceTimer(1.0)]),
            (0.9, RebalanceTimerElapsed(), [SetRebalanceTimer(1.0)]),
        ],
    ),
    "a timer that fires during a run is ignored": (
        V5,
        [(5.0, IdsChanged(), [RUN]), (20.0, RebalanceTimerElapsed(), [])],
    ),
    "a refused lock brings 5.x back in half a second, but not within a second of a run": (
        V5,
        [
            (5.0, IdsChanged(), [RUN]),
            (5.1, RebalanceRequested(0.5), []),
            (5.2, RunFinished(True), [SetRebalanceTimer(6.2)]),
            (6.2, RebalanceTimerElapsed(), [RUN]),
        ],
    ),
    "a request for later during a long run is kept": (
        V5,
        [
            (5.0, IdsChanged(), [RUN]),
            (5.1, RebalanceRequested(3.0), []),
            (5.2, RunFinished(True), [SetRebalanceTimer(8.1)]),
        ],
    ),
    "a corrected offset asks for a run now": (V5, [(9.0, RebalanceRequested(), [RUN])]),
    "a changed route waits for the timer": (V5, [(9.0, RouteChanged(), [])]),
    "a new subscription sends a heartbeat": (
        V5,
        [(9.0, SubscriptionChanged(), [SendHeartbeats()])],
    ),
    "a pull consumer's new subscription fetches routes too": (
        V4,
        [(9.0, SubscriptionChanged(pull_consumer=True), [SendHeartbeats(), FetchRoutes()])],
    ),
    "leaving a topic says nothing": (V5, [(9.0, SubscriptionChanged(added=False), [])]),
    "5.x greets a broker over a fresh connection and rebalances": (
        V5,
        [
            (9.0, BrokerChannelActive("b:1"), [SendHeartbeatTo("b:1")]),
            (9.1, ChannelHeartbeatSent(), [RUN]),
        ],
    ),
    "4.x does not": (V4, [(9.0, BrokerChannelActive("b:1"), [])]),
    "a paused 5.x consumer skips its turn every second": (
        V5,
        [
            (0.5, Paused(), []),
            (20.0, RebalanceTimerElapsed(), [SetRebalanceTimer(21.0)]),
            (21.0, RebalanceTimerElapsed(), [SetRebalanceTimer(22.0)]),
            (21.5, Resumed(), [RUN]),
            (21.6, RunFinished(True), [SetRebalanceTimer(41.6)]),
        ],
    ),
    "a paused 4.x consumer skips its turn every 20 s": (
        V4,
        [
            (0.5, Paused(), []),
            (1.0, IdsChanged(), [SetRebalanceTimer(21.0)]),
            (2.0, Resumed(), [RUN]),
        ],
    ),
    "resuming during a run brings another": (
        V4,
        [
            (1.0, IdsChanged(), [RUN]),
            (1.1, Paused(), []),
            (1.2, Resumed(), []),
            (1.3, RunFinished(True), [RUN]),
        ],
    ),
    "a stopped client is silent": (
        V5,
        [
            (5.0, Stopped(), []),
            (6.0, IdsChanged(), []),
            (20.0, RebalanceTimerElapsed(), []),
            (21.0, ConsumerStarted(), []),
        ],
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_story(name: str) -> None:
    profile, story = STORIES[name]
    schedule = new_schedule(profile, 0.0)
    for now, event, expected in story:
        step = advance(schedule, event, now)
        assert list(step.instructions) == expected, f"{event} at {now}"
        schedule = step.schedule


def test_a_client_may_choose_to_follow_the_route_at_once() -> None:
    eager = msgspec.structs.replace(V5, rebalance_on_route_change=True)
    assert advance(new_schedule(eager, 0.0), RouteChanged(), 9.0).instructions == (RUN,)


def test_a_topic_that_appears_brings_a_run_at_once_where_all_members_are_prompt() -> None:
    eager = msgspec.structs.replace(V5, rebalance_on_route_change=True)
    fresh = new_schedule(eager, 0.0)
    assert advance(fresh, RouteChanged(), 0.3).instructions == (SetRebalanceTimer(1.0),)
    assert advance(fresh, RouteChanged(pause=0.05), 0.3).instructions == (RUN,)
    known = msgspec.structs.replace(fresh, pause=0.02, ran=True, last_run=0.2)
    assert advance(known, RouteChanged(), 0.3).instructions == (RUN,)


events = st.sampled_from(
    [
        ConsumerStarted(),
        RebalanceTimerElapsed(),
        IdsChanged(),
        RebalanceRequested(0.5),
        Paused(),
        Resumed(),
    ]
)


@given(
    st.sampled_from([V4, V5]),
    st.lists(st.tuples(st.floats(0.01, 3.0), events, st.booleans()), max_size=40),
)
@settings(max_examples=150, deadline=None)
def test_runs_never_overlap_and_the_timer_is_always_set(
    profile: Profile, story: list[tuple[float, ScheduleEvent, bool]]
) -> None:
    schedule: RebalanceSchedule = new_schedule(profile, 0.0)
    now, last_end, timer, running = 0.0, -9.0, schedule.due, False
    for gap, happening, finish in story:
        now += gap
        event = happening
        if running and finish:
            event, running, last_end = RunFinished(False), False, now
        step = advance(schedule, event, now)
        schedule = step.schedule
        for instruction in step.instructions:
            if isinstance(instruction, SetRebalanceTimer):
                timer = instruction.when
            if instruction == RUN:
                assert not running
                if not isinstance(event, Resumed | RunFinished):
                    assert now - last_end >= profile.rebalance_min_interval - 1e-9
                running = True
        assert running or timer == schedule.due
