"""What givers and heirs tell of a hand-over is put together; version 1 is read as before."""

import json
from typing import Any

import msgspec
import pytest

from pocketmq.balance.story.handed_over import MOST_APART, HandedOver, handed_over, on_one_machine
from pocketmq.model import MessageQueue, QueueName
from pocketmq.model.rebalance_event import EVENT_VERSION, Handover, RebalanceEvent

QUEUE = MessageQueue("orders", "a", 1)
NAME = QueueName("orders", "a", 1)
A, B, C = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1", "10.0.0.2@3@pm1"


def told(by: str, *records: Handover, at: float = 100.0) -> RebalanceEvent:
    """Write an event as its member does, and read it as a pipeline does."""
    event = RebalanceEvent(
        group="shop", client_id=by, topic="orders", strategy="STICKY", trigger="members changed",
        started=at, mode="sticky", handovers=records,
    )  # fmt: skip
    return RebalanceEvent.from_json(event.to_json())


def gave(heir: str | None = B, *, at: float | None = 100.0, **more: Any) -> Handover:
    told = {"queue": QUEUE, "kind": "overlap", "giver": A, "heir": heir, "offset": 7}
    fields: dict[str, Any] = told | {"stopped": at} | more
    return Handover(**fields)


def took(heir: str = B, *, at: float | None = 100.02, **more: Any) -> Handover:
    told = {"queue": QUEUE, "kind": "overlap", "giver": A, "heir": heir, "offset": 7}
    fields: dict[str, Any] = told | {"started": at} | more
    return Handover(**fields)


def test_giver_and_heir_tell_one_hand_over() -> None:
    [one] = handed_over([told(B, took()), told(A, gave(drained=100.5))])
    assert one == HandedOver(
        queue=NAME, kind="overlap", giver=A, heir=B, offset=7,
        stopped=100.0, started=100.02, drained=100.5,
    )  # fmt: skip
    assert one.without_owner == pytest.approx(0.02)
    assert one.two_owners == 0.0
    assert one.draining == pytest.approx(0.5)
    assert one.one_clock


def test_a_giver_that_tells_twice_tells_of_one_hand_over() -> None:
    later = gave(drained=103.0)
    end = gave(at=None, drained=103.0)
    for second in (later, end):
        [one] = handed_over([told(A, gave()), told(B, took()), told(A, second)])
        assert (one.stopped, one.started, one.drained) == (100.0, 100.02, 103.0)


def test_an_heir_that_started_first_means_two_owners_certain_on_one_machine_only() -> None:
    [near] = handed_over([told(A, gave()), told(B, took(at=99.9))])
    assert near.two_owners == pytest.approx(0.1)
    assert near.without_owner == 0.0
    assert near.one_clock
    [far] = handed_over([told(A, gave(C)), told(C, took(C, at=99.9))])
    assert far.two_owners == pytest.approx(0.1)
    assert not far.one_clock


def test_records_of_other_offsets_queues_or_members_are_other_hand_overs() -> None:
    other_queue = MessageQueue("orders", "a", 2)
    for other in (
        took(offset=8), took(queue=other_queue), took(C), took(giver=C),
        took(at=100.1 + MOST_APART),
    ):  # fmt: skip
        found = handed_over([told(A, gave()), told(str(other.heir), other)])
        assert len(found) == 2
        assert all(one.without_owner is None and one.two_owners is None for one in found)


def test_a_queue_that_went_there_back_and_there_again_without_a_message() -> None:
    found = handed_over(
        [
            told(A, gave(at=10.0), took(A, at=20.03, giver=B), gave(at=30.0)),
            told(B, took(at=10.01), gave(A, at=20.0, giver=B), took(at=30.02)),
        ]
    )
    assert [(one.giver, one.heir, one.stopped, one.started) for one in found] == [
        (A, B, 10.0, 10.01), (B, A, 20.0, 20.03), (A, B, 30.0, 30.02),
    ]  # fmt: skip


def test_a_leaver_that_does_not_know_its_heir() -> None:
    left = gave(None, kind="drain")
    named = took(kind="orphan", at=101.0)
    unnamed = took(kind="orphan", giver=None, at=101.0)
    for heir in (named, unnamed):
        [one] = handed_over([told(A, left), told(B, heir)])
        assert (one.kind, one.giver, one.heir) == ("orphan", A, B)
        assert one.without_owner == pytest.approx(1.0)


def test_an_heir_that_names_nobody_did_not_start_before_the_giver_stopped() -> None:
    first = took(giver=None, kind="orphan", at=50.0)
    found = handed_over([told(B, first), told(A, gave(None))])
    assert len(found) == 2
    own = took(A, giver=None, kind="orphan", at=100.5)
    assert len(handed_over([told(A, own), told(A, gave(None))])) == 2


def test_a_lost_lock_stays_lost_when_another_member_takes_the_queue() -> None:
    lost = gave(None, kind="lost", offset=None)
    [one] = handed_over([told(A, lost), told(B, took(kind="orphan", at=99.0))])
    assert (one.kind, one.two_owners) == ("lost", 1.0)


def test_a_first_owner_alone_is_a_hand_over_without_a_giver() -> None:
    [one] = handed_over([told(B, took(giver=None, kind="orphan"))])
    assert (one.giver, one.heir, one.without_owner) == (None, B, None)
    assert not one.one_clock


def test_events_of_version_1_are_read_and_tell_of_none() -> None:
    event = told(A)
    fields = json.loads(event.to_json())
    for name in ("mode", "handovers", "moved", "minimum"):
        del fields[name]
    old = RebalanceEvent.from_json(json.dumps(fields | {"version": 1}))
    assert (old.version, old.mode, old.handovers, old.moved) == (1, "java", (), None)
    assert handed_over([old]) == []
    assert event.version == EVENT_VERSION == 2
    later = json.loads(told(A, gave()).to_json()) | {"version": 3, "unheard_of": 1}
    assert RebalanceEvent.from_json(json.dumps(later)).handovers == (gave(),)


def test_a_malformed_hand_over_is_refused_as_a_whole() -> None:
    fields = json.loads(told(A, gave()).to_json())
    fields["handovers"][0]["queue"] = "orders"
    with pytest.raises(msgspec.ValidationError):
        RebalanceEvent.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1@7", "10.0.0.1@8", True),
        ("10.0.0.1@7", "10.0.0.10@7", False),
        ("plain", "plain", False),
        ("@7", "@7", False),
        (None, None, False),
        ("10.0.0.1@7", None, False),
    ],
)
def test_the_machine_is_what_client_ids_begin_with(
    one: str | None, other: str | None, same: bool
) -> None:
    assert on_one_machine(one, other) is same
