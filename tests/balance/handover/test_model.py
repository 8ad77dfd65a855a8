"""Model check of the shipped hand-over: all interleavings of small cases, and mutants of it.

`POCKETMQ_MODEL=all` explores the large cases as well (minutes); numbers of states are printed
with `pytest -s`.
"""

import os
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pocketmq.balance.handover import HandoverSettings, giving, leases, queue, steps, tail, taking
from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.stay import Phase, Stay, Step
from tests.balance.handover.explorer import Case, Explorer, Found, Label, explore

# Laws that hold in every case, however much goes wrong.
ALWAYS = ("lost", "stuck")
# Two members start messages only where brokers list one of them no more while it lives.
NO_FAULT = ("both", "twice", "lost", "backwards", "stuck")
CRASH = ("both", "lost", "backwards", "stuck")

SMALL = [
    (Case(messages=2, claims=1), NO_FAULT),
    (Case(messages=2, claims=1, flips=1, at_once=2), NO_FAULT),
    (Case(messages=2, claims=1, overlap=False), NO_FAULT),
    (Case(messages=1, claims=1, loss=1), NO_FAULT),
    (Case(messages=1, claims=1, flips=1, members=3), NO_FAULT),
    (Case(messages=1, claims=1, renew=1), NO_FAULT),
    (Case(messages=1, claims=1, release=1), NO_FAULT),
    (Case(messages=2, claims=1, flips=1, silence=1), NO_FAULT),
    (Case(messages=1, claims=1, silence=1), NO_FAULT),
    (Case(messages=1, claims=1, flips=1, patient=True, late=1, silence=1), NO_FAULT),
    (Case(messages=1, claims=1, flips=1, patient=True, late=1, renew=1), NO_FAULT),
    (Case(messages=1, claims=1, flips=1, patient=True, copies=1), NO_FAULT),
    (Case(messages=2, claims=1, flips=1, silence=1, overlap=False), NO_FAULT),
    (Case(messages=2, claims=1, flips=1, fresh=True), NO_FAULT),
    (Case(messages=2, claims=1, flips=1, crash=1, loss=1), CRASH),
    (Case(messages=1, claims=1, flips=1, crash=1, patient=True, late=1), CRASH),
    (Case(messages=1, claims=1, flips=1, reborn=1, patient=True), CRASH),
    (Case(messages=2, claims=1, flips=1, crash=1, fresh=True), CRASH),
    (Case(messages=2, claims=1, crash=1, overlap=False), CRASH),
    (Case(messages=2, claims=1, flips=1, impatient=1), CRASH),
    (Case(messages=2, claims=1, flips=1, impatient=1, overlap=False), CRASH),
    (Case(messages=1, claims=1, flips=1, restart=1), CRASH),
    (Case(messages=1, claims=1, flips=1, restart=1, overlap=False), CRASH),
    (Case(messages=1, claims=1, flips=1, expire=1), CRASH),
    (Case(messages=1, claims=1, flips=1, expire=1, lost=True), CRASH),
    (Case(messages=2, claims=1, flips=1, expire=1, lost=True, overlap=False), CRASH),
    (Case(messages=1, claims=1, flips=0, blip=1), ALWAYS),
]

LARGE = [
    (Case(messages=3, claims=1), NO_FAULT),
    (Case(messages=3, claims=1, overlap=False), NO_FAULT),
    (Case(messages=1, claims=2), NO_FAULT),
    (Case(messages=2, claims=1, at_once=2), NO_FAULT),
    (Case(messages=2, claims=1, loss=1), NO_FAULT),
    (Case(messages=2, claims=1, flips=1, members=3), NO_FAULT),
    (Case(messages=1, claims=1, members=3), NO_FAULT),
    (Case(messages=2, claims=1, release=1, renew=1), NO_FAULT),
    (Case(messages=2, claims=1, silence=1), NO_FAULT),
    (Case(messages=1, claims=2, flips=1, patient=True, late=1), NO_FAULT),
    (Case(messages=1, claims=1, flips=1, members=3, patient=True, late=1), NO_FAULT),
    (Case(messages=1, claims=2, patient=True, copies=1), NO_FAULT),
    (Case(messages=2, claims=1, silence=1, renew=1, overlap=False), NO_FAULT),
    (Case(messages=2, claims=1, crash=1), CRASH),
    (Case(messages=2, claims=1, crash=1, loss=1), CRASH),
    (Case(messages=1, claims=2, flips=1, reborn=1), CRASH),
    (Case(messages=1, claims=1, flips=1, restart=1, patient=True, late=1), CRASH),
    (Case(messages=1, claims=1, flips=1, expire=1, lost=True, late=1), CRASH),
    (Case(messages=1, claims=1, flips=1, crash=1, members=3), CRASH),
    (Case(messages=2, claims=1, restart=1, overlap=False), CRASH),
    (Case(messages=1, claims=1, restart=1), CRASH),
    (Case(messages=2, claims=1, restart=1), CRASH),
    (Case(messages=1, claims=1, expire=1), CRASH),
    (Case(messages=1, claims=1, expire=1, lost=True), CRASH),
    (Case(messages=1, claims=1, blip=1), ALWAYS),
]


def shown(case: Case) -> str:
    words = {name: getattr(case, name) for name in Case.__struct_fields__}
    plain = Case()
    changed = [f"{k}={v}" for k, v in words.items() if v != getattr(plain, k)]
    return " ".join(changed) or "plain"


def check(case: Case, laws: tuple[str, ...]) -> None:
    found = explore(case)
    said = f"{shown(case)}: {found.states:,} states, {found.broken() or 'nothing broken'}"
    print(f"\n{said}", flush=True)
    assert {law: found.ways[law] for law in laws if law in found.ways} == {}
    assert found.states > 500


@pytest.mark.parametrize(
    ("case", "laws"), SMALL, ids=lambda value: shown(value) if isinstance(value, Case) else ""
)
def test_no_interleaving_breaks_a_law(case: Case, laws: tuple[str, ...]) -> None:
    check(case, laws)


@pytest.mark.skipif(os.environ.get("POCKETMQ_MODEL") != "all", reason="minutes of CPU time")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("case", "laws"), LARGE, ids=lambda value: shown(value) if isinstance(value, Case) else ""
)
def test_no_interleaving_of_a_large_case_breaks_a_law(case: Case, laws: tuple[str, ...]) -> None:
    check(case, laws)


# Mutants: each takes one rule away, and the explorer must see the harm.

Patch = Callable[[pytest.MonkeyPatch], None]


def run_lock_alone(patch: pytest.MonkeyPatch) -> None:
    """Orphans are taken with the run lock, and queues are given without the tail's."""
    patch.setattr(taking, "BOTH", do.RUN)
    patch.setattr(taking, "needed_parts", lambda stay: do.RUN)


def give_not_tied_to_claim(patch: pytest.MonkeyPatch) -> None:
    """The tie is a second line: it is seen where the tail is not asked for either."""
    idle_queue_without_tail(patch)
    shipped = taking.given

    def given(stay: Stay, giver: str, give: do.BusMessage, *more: object) -> Step:  # type: ignore[name-defined]
        if stay.phase in (Phase.WANTED, Phase.CLAIMED):
            stay = replace(stay, phase=Phase.CLAIMED, peer=giver, number=give.number)
        return shipped(stay, giver, give, *more)  # type: ignore[arg-type]

    patch.setattr(taking, "given", given)


def no_query_after_give(patch: pytest.MonkeyPatch) -> None:
    def started(stay: Stay, offset: int, *more: object, stored: bool) -> Step:
        start = offset if stay.offset is None else stay.offset
        return taking.run(stay, start, None, *more)  # type: ignore[arg-type]

    patch.setattr(taking, "_started", started)


def no_barrier(patch: pytest.MonkeyPatch) -> None:
    shipped = taking.run
    patch.setattr(
        taking, "run", lambda stay, offset, barrier, *more: shipped(stay, offset, None, *more)
    )


def given_without_tail(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(giving, "can_give", giving.can_release)


def released_behind_barrier(patch: pytest.MonkeyPatch) -> None:
    shipped = giving.can_release
    patch.setattr(giving, "can_release", lambda stay: shipped(replace(stay, barrier=None)))


def hole_without_tail_lock(patch: pytest.MonkeyPatch) -> None:
    """Who hears that the giver is away fills the hole at once."""
    shipped = tail.watch_tail

    def watch(stay: Stay, others: tail.Others, *more: object) -> Step:
        if stay.barrier is not None and others.peer_away and not stay.pending:
            stay = replace(stay, locks=do.BOTH)
        return shipped(stay, others, *more)  # type: ignore[arg-type]

    patch.setattr(queue, "watch_tail", watch)


def barrier_lifted_at_once(patch: pytest.MonkeyPatch) -> None:
    shipped = tail.barrier_read
    patch.setattr(
        taking,
        "barrier_read",
        lambda stay, offset, *more, stored: shipped(stay, stay.barrier, *more, stored=True),
    )


def unlock_of_listed_members(patch: pytest.MonkeyPatch) -> None:
    def gone(self: Explorer, world: object, i: int) -> frozenset[str]:
        return frozenset(owner for j, owner in enumerate(self.owners) if j != i)

    patch.setattr(Explorer, "gone", gone)


def tail_unlocked_before_drained(patch: pytest.MonkeyPatch) -> None:
    shipped = giving.drain

    def drain(stay: Stay) -> Step:
        step = shipped(stay)
        assert step.stay is not None
        early = do.Unlock(stay.queue, do.TAIL, "A@pm1#1")
        return Step(step.stay, (*step.instructions, early))

    patch.setattr(giving, "drain", drain)


def idle_queue_without_tail(patch: pytest.MonkeyPatch) -> None:
    """An heir starts with the run lock alone where the giver has finished everything."""
    shipped = taking._started
    patch.setattr(
        taking,
        "_started",
        lambda stay, *more, stored: shipped(
            replace(stay, locks=do.BOTH) if stay.locks else stay, *more, stored=stored
        ),
    )


def first_start_not_stored(patch: pytest.MonkeyPatch) -> None:
    """A queue without a stored offset is run at once; its heir finds none either."""
    shipped = taking._started
    patch.setattr(
        taking,
        "_started",
        lambda stay, offset, *more, stored: shipped(
            stay, offset, *more, stored=stored or stay.kind is do.HandoverKind.ORPHAN
        ),
    )


def unlock_while_renewing(patch: pytest.MonkeyPatch) -> None:
    shipped = steps.unlock_own

    def unlock_own(item: Stay, settings: object) -> Step:
        step = shipped(replace(item, renewing=False), settings)  # type: ignore[arg-type]
        return Step(step.stay and replace(step.stay, renewing=item.renewing), step.instructions)

    patch.setattr(giving, "unlock_own", unlock_own)


def refused_renewal_ignored(patch: pytest.MonkeyPatch) -> None:
    shipped = leases.renewed
    patch.setattr(
        leases,
        "renewed",
        lambda stay, asked, granted, *more, sent_at: shipped(
            stay, asked, None if granted is None else asked, *more, sent_at=sent_at
        ),
    )


def heir_asks_for_ever(patch: pytest.MonkeyPatch) -> None:
    """An heir that was refused the lock does not give up, though the giver died before the unlock."""
    shipped = taking.locked

    def locked(item: Stay, granted: object, settings: HandoverSettings, now: float) -> Step:
        return shipped(item, granted, settings, min(now, item.since))  # type: ignore[arg-type]

    patch.setattr(queue, "locked", locked)


def late_tail_kept(patch: pytest.MonkeyPatch) -> None:
    """After a request for locks without an answer only the run lock is given back."""
    shipped = steps.close
    patch.setattr(
        steps,
        "close",
        lambda item, *more: shipped(replace(item, releasing=item.releasing & do.RUN), *more),
    )


def give_instead_of_unlock(patch: pytest.MonkeyPatch) -> None:
    shipped = giving.starting_stopped

    def stopped(*facts: object) -> Step:
        step = shipped(*facts)  # type: ignore[arg-type]
        told = [what for what in step.instructions if isinstance(what, do.Tell)]
        return Step(step.stay, tuple(told) or step.instructions)

    patch.setattr(queue, "starting_stopped", stopped)


PLAIN = Case(messages=2, claims=1)
CRASHED = Case(messages=2, claims=1, flips=1, crash=1)

MUTANTS: list[tuple[Patch, Case, str]] = [
    (run_lock_alone, PLAIN, "twice"),
    (give_not_tied_to_claim, Case(messages=1, claims=2, flips=3), "twice"),
    (no_query_after_give, PLAIN, "backwards"),
    (no_barrier, CRASHED, "lost"),
    (given_without_tail, Case(messages=2, claims=1), "twice"),
    (released_behind_barrier, Case(messages=2, claims=1, release=1), "lost"),
    (hole_without_tail_lock, PLAIN, "twice"),
    (barrier_lifted_at_once, CRASHED, "lost"),
    (unlock_of_listed_members, PLAIN, "both"),
    (tail_unlocked_before_drained, PLAIN, "twice"),
    (idle_queue_without_tail, Case(messages=1, claims=1, members=3), "twice"),
    (first_start_not_stored, Case(messages=2, claims=1, flips=1, fresh=True, crash=1), "lost"),
    (unlock_while_renewing, Case(messages=1, claims=1, flips=1, renew=1), "stuck"),
    (refused_renewal_ignored, Case(messages=1, claims=1, flips=1, expire=1), "both"),
    (heir_asks_for_ever, Case(messages=1, claims=1, flips=1, crash=1, patient=True), "stuck"),
    (late_tail_kept, Case(messages=1, claims=1, silence=1), "stuck"),
    (give_instead_of_unlock, PLAIN, "stuck"),
]


class Caught(Exception):
    """The law that a mutant breaks was broken."""


@pytest.mark.parametrize(
    ("mutant", "case", "law"), MUTANTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_without_a_rule_a_law_is_broken(
    mutant: Patch, case: Case, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    shipped = Explorer.note

    def note(found: Found, broken: str, number: int, came: list[tuple[int, Label]]) -> None:
        shipped(found, broken, number, came)
        if broken == law:
            raise Caught(found.ways[law])

    monkeypatch.setattr(Explorer, "note", staticmethod(note))
    with pytest.raises(Caught):
        explore(case, limit=200_000, deep=True)
