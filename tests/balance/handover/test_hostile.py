"""Hostile and confused input: `advance` raises for nothing, and its tables stay small."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance import handover
from pocketmq.balance.handover import events as ev
from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover import messages
from pocketmq.balance.handover.stay import Phase
from pocketmq.balance.handover.table import MOST_REPORTS
from pocketmq.model import MessageQueue

QUEUES = [MessageQueue("t", broker, number) for broker in "ab" for number in range(2)]
STRANGE = MessageQueue("unknown", "nowhere", -7)
IDS = ["me@pm1", "you@pm1", "it@pm1", "java"]
OWNERS = [messages.lock_owner(name, boot) for name in IDS for boot in ("1", "2")]
ME = handover.HandoverSettings(group="g", client_id="me@pm1", boot="1")


def any_message(chance: random.Random) -> object:
    queue = chance.choice([*QUEUES, STRANGE])
    number = chance.randrange(4)
    some = tuple(chance.sample(QUEUES, chance.randrange(4)))
    return chance.choice(
        [
            messages.Hello(),
            messages.State(number, some, (queue,), {chance.choice(OWNERS): some, "x": some}),
            messages.State(number, (queue,), away={chance.choice(OWNERS): 3.0}),
            messages.QueueClaim(chance.choice(IDS), (*some, queue), number),
            messages.Give(chance.choice(IDS), queue, chance.choice([0, 5, 1 << 61]), number),
            messages.Bye(chance.choice([0.0, 5.0])),
        ]
    )


def any_event(chance: random.Random, now: float) -> ev.HandoverEvent:
    queue = chance.choice([*QUEUES, STRANGE])
    broker = chance.choice(["a", "b", "nowhere"])
    parts = chance.choice([do.RUN, do.TAIL, do.BOTH, frozenset()])
    locks = frozenset((one, part) for one in chance.sample(QUEUES, 2) for part in parts)
    flag = chance.random() < 0.7
    members = tuple(chance.choices(IDS, k=chance.randrange(5)))
    events: list[ev.HandoverEvent] = [
        ev.Started(),
        ev.MembersListed(members, complete=flag),
        ev.Routed(frozenset(chance.sample(QUEUES, chance.randrange(5)))),
        ev.Heard(broker, chance.choice(IDS), chance.choice("12"), any_message(chance)),  # type: ignore[arg-type]
        ev.Heard(broker, chance.choice(IDS), chance.choice("12"), any_message(chance)),  # type: ignore[arg-type]
        ev.Locked(queue, chance.choice([parts, do.BOTH, None])),
        ev.Unlocked(queue, parts, chance.choice(OWNERS), flag),
        ev.StartRead(queue, chance.choice([None, 0, 7]), stored=flag),
        ev.OffsetStored(queue, flag),
        ev.Overtaken(queue),
        ev.StartingStopped(queue, 7),
        ev.Drained(queue, stored=flag),
        ev.HoleFilled(queue),
        ev.Renewed(broker, now, chance.choice([None, locks, frozenset()])),
        ev.Connected(broker),
        ev.Disconnected(broker),
        *[ev.TimerElapsed()] * 6,
    ]
    return chance.choice(events)


@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "drain"])
@pytest.mark.parametrize("seed", range(6))
def test_no_order_of_events_raises(seed: int, overlap: bool) -> None:
    """Answers to what was asked are mixed with answers to what never was."""
    chance = random.Random(seed)
    group = handover.new_group(msgspec.structs.replace(ME, overlap=overlap))
    now = 0.0
    for first in (ev.Routed(frozenset(QUEUES)), ev.Started(), ev.MembersListed(("me@pm1",))):
        group = handover.advance(group, first, now).group
    reached = set()
    asked: list[ev.HandoverEvent] = []
    for _ in range(3000):
        now += chance.choice([0.0, 0.001, 0.1, 3.0])
        if asked and chance.random() < 0.6:
            event = asked.pop(chance.randrange(len(asked)))
        else:
            event = any_event(chance, now)
        result = handover.advance(group, event, now)
        group = result.group
        reached |= {stay.phase for stay in group.stays.values()}
        asked += [answer for what in result.instructions if (answer := answered(what, now))]
        hash(group)
        handover.balance_of(group)
        assert group.stays.keys() <= set(QUEUES)
    assert reached >= {Phase.READING, Phase.RUNNING, Phase.DRAINING, Phase.CLOSING}
    for _ in range(2):
        result = handover.advance(group, ev.Stopping(1.0), now)
        group = result.group


def answered(what: object, now: float) -> ev.HandoverEvent | None:
    match what:
        case do.Lock(queue=queue, parts=parts):
            return ev.Locked(queue, parts)
        case do.Unlock(queue=queue, parts=parts, owner=owner):
            return ev.Unlocked(queue, parts, owner, True)
        case do.ReadStart(queue=queue):
            return ev.StartRead(queue, 3)
        case do.StopStarting(queue=queue):
            return ev.StartingStopped(queue, 5)
        case do.Drain(queue=queue):
            return ev.Drained(queue)
        case do.Renew(broker=broker, locks=locks):
            return ev.Renewed(broker, now, locks)
    return None


def started() -> handover.HandoverGroup:
    group = handover.new_group(ME)
    for event in (ev.Routed(frozenset(QUEUES)), ev.Started(), ev.MembersListed(("me@pm1",))):
        group = handover.advance(group, event, 0.0).group
    return group


def test_tables_have_limits() -> None:
    group = started()
    for number in range(MOST_REPORTS + 200):
        hello = ev.Heard("a", f"m{number}@pm1", "1", messages.Hello())
        twin = ev.Heard("a", "me@pm1", f"boot{number}", messages.Hello())
        group = handover.advance(group, hello, 1.0).group
        group = handover.advance(group, twin, 1.0).group
    assert len(group.table.reports) == MOST_REPORTS
    assert len(group.later_boots) <= 100
    strange = ev.Heard("a", "you@pm1", "1", messages.QueueClaim("me@pm1", (STRANGE,), 1))
    assert handover.advance(group, strange, 1.0).group.claims == {}


def hear(group: handover.HandoverGroup, name: str, number: int, now: float, *more: object):  # type: ignore[no-untyped-def]
    word = messages.State(number, (QUEUES[0],), *more)  # type: ignore[arg-type]
    return handover.advance(group, ev.Heard("a", name, "1", word), now).group


def test_members_that_are_gone_make_room_and_are_forgotten() -> None:
    """Otherwise a member that runs for long would not know those that come late."""
    group = started()
    for number in range(MOST_REPORTS):
        group = hear(group, f"old{number}@pm1", 1, 1.0 + number / 1e4)
    everyone = tuple(word.client_id for word in group.table.reports.values())
    group = handover.advance(group, ev.MembersListed(("me@pm1", *everyone)), 2.0).group
    group = handover.advance(group, ev.MembersListed(("me@pm1", *everyone[1:])), 3.0).group
    group = handover.advance(group, ev.MembersListed(("me@pm1",)), 4.0).group
    assert len(group.table.gone) == MOST_REPORTS
    group = hear(group, "new@pm1", 1, 5.0)
    assert len(group.table.reports) == MOST_REPORTS
    assert "new@pm1#1" in group.table.reports
    assert "old0@pm1#1" not in {**group.table.reports, **group.table.gone}
    listed = ev.MembersListed(("me@pm1", "new@pm1"))
    for now in (500.0, 603.0):
        group = handover.advance(group, listed, now).group
        assert len(group.table.reports) == MOST_REPORTS
    group = handover.advance(group, listed, 605.0).group
    assert group.table.reports.keys() == {"new@pm1#1"}
    assert group.table.gone == {}


def tells_newcomers(group: handover.HandoverGroup, now: float) -> messages.State:
    group = handover.advance(group, ev.Heard("a", "zz@pm1", "1", messages.Hello()), now).group
    told = handover.advance(group, ev.TimerElapsed(), now + 1.0).instructions
    states = [what.message for what in told if isinstance(what, do.Tell)]
    assert isinstance(states[0], messages.State)
    return states[0]


def test_a_newcomer_is_told_what_it_can_read_and_of_no_one_gone_for_long() -> None:
    group = started()
    names = [f"old{number}@pm1" for number in range(MOST_REPORTS)]
    for name in names:
        group = hear(group, name, 1, 1.0)
    group = handover.advance(group, ev.MembersListed(("me@pm1", *names)), 2.0).group
    group = handover.advance(group, ev.MembersListed(("me@pm1", *names[50:])), 3.0).group
    state = tells_newcomers(group, 4.0)
    notice = messages.Notice("me@pm1", "1", (state,))
    assert messages.read_notice(messages.write_notice(notice)) == notice
    assert state.table.keys() > {f"{name}#1" for name in names[50:]}
    group = handover.advance(group, ev.MembersListed(("me@pm1", *names[50:])), 100.0).group
    assert tells_newcomers(group, 101.0).table.keys() == {f"{name}#1" for name in names[50:]}


def test_events_without_a_pause_put_nothing_off() -> None:
    """Neither decisions, for which the timer is set, nor the question for members."""
    group = started()
    now, asked, wakes = 0.0, [], set()
    for number in range(1, 40):
        now = number / 10
        hello = ev.Heard("a", f"m{number}@pm1", "1", messages.Hello())
        result = handover.advance(group, hello, now)
        group = result.group
        wakes |= {group.wake_at}
        if number % 5 == 0:  # the loop is busy, and its timers are late
            assert group.wake_at is not None
            assert group.wake_at <= now - 0.4
            result = handover.advance(group, ev.TimerElapsed(), now)
            group = result.group
            asked += [now for what in result.instructions if isinstance(what, do.AskMembers)]
    assert len(wakes) <= 8
    assert asked[:2] == [1.0, 2.0]
    # The last question comes half a second after the last voice: its answer shows that member.
    assert group.ask_at == 4.0
    group = handover.advance(group, ev.TimerElapsed(), 4.0).group
    assert group.ask_at == 5.0
    assert handover.advance(group, ev.TimerElapsed(), 5.0).group.ask_at is None


def with_you(*heard: tuple[float, str, messages.BusMessage, float]) -> handover.HandoverGroup:
    """This member beside `you`, after boots of that said things: when, boot, what, and its age."""
    group = handover.advance(started(), ev.MembersListed(("me@pm1", "you@pm1")), 0.0).group
    for now, boot, message, age in heard:
        event = ev.Heard("a", "you@pm1", boot, message, age)
        group = handover.advance(group, event, now).group
    return group


def taken_for_ended(
    group: handover.HandoverGroup, now: float, *, complete: bool = True
) -> set[str]:
    """Return the lock owners whose locks are freed once members are listed at this time."""
    listed = ev.MembersListed(("me@pm1", "you@pm1"), complete=complete)
    return set(handover.advance(group, listed, now).group.table.gone)


HELLO: messages.BusMessage = messages.Hello()
STATE: messages.BusMessage = messages.State(1, (QUEUES[0],))


def test_a_member_that_started_again_has_ended_before() -> None:
    restarted = [(1.0, "1", STATE, 0.0), (2.0, "2", HELLO, 0.0), (2.1, "2", STATE, 0.0)]
    group = with_you(*restarted)
    assert taken_for_ended(group, 2.4) == set(), "the list may be from before"
    assert taken_for_ended(group, 2.6, complete=False) == set(), "the id may be listed twice"
    assert taken_for_ended(group, 2.6) == {"you@pm1#1"}


def test_the_copy_of_a_hello_alone_frees_no_locks() -> None:
    """Who has really started says more, and soon."""
    group = with_you((1.0, "2", STATE, 0.0), (2.0, "1", HELLO, 0.0))
    assert taken_for_ended(group, 5.0) == set()


def test_a_boot_that_has_ended_cannot_end_another_by_a_copy_of_its_words() -> None:
    restarted = [(1.0, "1", STATE, 0.0), (2.0, "2", HELLO, 0.0), (2.1, "2", STATE, 0.0)]
    listed = ev.MembersListed(("me@pm1", "you@pm1"))
    group = handover.advance(with_you(*restarted), listed, 3.0).group
    for message in (HELLO, messages.State(2, (QUEUES[0],))):
        event = ev.Heard("b", "you@pm1", "1", message)
        group = handover.advance(group, event, 10.0).group
    assert "you@pm1#2" not in taken_for_ended(group, 12.0)


def test_a_hello_from_before_the_other_boot_was_heard_frees_no_locks() -> None:
    """As on the bus of a broker that was away, or of a member that was stopped for a while."""
    late = [(1.0, "2", STATE, 0.0), (3.0, "1", HELLO, 2.6), (3.0, "1", STATE, 2.6)]
    assert taken_for_ended(with_you(*late), 4.0) == set()
    fresh = [(now, boot, message, 0.0) for now, boot, message, _ in late]
    assert taken_for_ended(with_you(*fresh), 4.0) == {"you@pm1#2"}
    # What the other boot said counts by when it was said, too.
    both = [(3.0, "2", STATE, 2.6), (3.0, "1", HELLO, 1.5), (3.0, "1", STATE, 1.5)]
    assert taken_for_ended(with_you(*both), 4.0) == {"you@pm1#2"}


def test_a_member_whose_hello_was_missed_has_ended_before_all_the_same() -> None:
    later = [(20.0 * n, "2", messages.State(n), 0.0) for n in range(1, 4)]
    assert taken_for_ended(with_you((1.0, "1", STATE, 0.0), *later[:2]), 59.0) == set()
    assert taken_for_ended(with_you((1.0, "1", STATE, 0.0), *later), 60.0) == {"you@pm1#1"}


def test_what_a_foreign_member_tells_is_ignored() -> None:
    group = started()
    assert (
        handover.advance(group, ev.Heard("a", "java", "1", messages.Hello()), 1.0).group.table
        == group.table
    )


NOTICE = messages.Notice(
    "you@pm1", "1", (messages.Hello(), messages.State(3, (QUEUES[0],)), messages.Bye(2.0))
)


def test_a_notice_is_read_as_it_was_written() -> None:
    assert messages.read_notice(messages.write_notice(NOTICE)) == NOTICE


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "TOMORROW", "more": 1},
        {"kind": "GIVE", "to": "x", "queue": {}, "offset": 1, "number": 1},
        {"kind": "STATE", "number": -1},
        {"kind": "STATE", "number": 1 << 70},
        {"kind": "BYE", "back_within": 1e12},
        {"kind": "CLAIM", "to": "x" * 10_000, "queues": [], "number": 1},
        7,
    ],
    ids=str,
)
def test_messages_that_are_unknown_or_out_of_range_are_skipped(message: object) -> None:
    body = {"sender": "you@pm1", "boot": "1", "messages": [{"kind": "HELLO"}, message]}
    read = messages.read_notice(msgspec.json.encode(body))
    assert read == messages.Notice("you@pm1", "1", (messages.Hello(),))


def test_of_a_long_notice_only_the_beginning_is_read() -> None:
    hellos = (messages.Hello(),) * 300
    gives = tuple(messages.Give("me@pm1", QUEUES[0], 1, number) for number in range(3000))
    mixed: tuple[messages.BusMessage, ...] = (*hellos[:10], *gives, *hellos[10:], messages.Bye())
    read = messages.read_notice(messages.write_notice(messages.Notice("you@pm1", "1", mixed)))
    assert read is not None
    assert read.messages == (
        *hellos[:10],
        *gives[: messages.MOST_GIVEN],
        *hellos[: messages.MOST_MESSAGES - 10],
    )


def test_what_is_not_a_notice_is_none() -> None:
    assert messages.read_notice(b"[]") is None
    assert messages.read_notice(b"{}") is None
    assert messages.read_notice(b"\xff\xfe") is None
    assert messages.read_notice(b"[" * 200_000) is None
    assert messages.read_notice(b" " * (5 << 20) + messages.write_notice(NOTICE)) is None


@given(st.binary(max_size=200))
def test_no_body_raises(body: bytes) -> None:
    messages.read_notice(body)


def test_members_that_speak_the_protocol_are_known_by_their_id() -> None:
    assert messages.is_ours("10.0.0.1@7#1@pm1")
    assert not messages.is_ours("10.0.0.1@pm12")
    assert not messages.is_ours("10.0.0.1@7#1")
    assert messages.lock_owner("a@pm1", "x") != messages.lock_owner("a@pm1", "y")
