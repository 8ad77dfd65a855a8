"""What a concurrent handler's answer means, row by row, and that no unfinished message is passed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.consumer import concurrent
from pocketmq.balance.consumer.handling import ConsumeReturnType, batches, return_type
from pocketmq.balance.consumer.instructions import UpdateOffset
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import MessageModel
from tests.balance.consumer.shapes import Msg, filled, q

OK, LATER = concurrent.ConcurrentStatus.CONSUME_SUCCESS, concurrent.ConcurrentStatus.RECONSUME_LATER
CLUSTERING, BROADCASTING = MessageModel.CLUSTERING, MessageModel.BROADCASTING
M = tuple(Msg(n) for n in (4, 5, 6))


def answer(
    status: concurrent.ConcurrentStatus | None, **facts: object
) -> concurrent.ConcurrentAnswer:
    return concurrent.ConcurrentAnswer(status=status, **facts)  # type: ignore[arg-type]


ROWS: list[tuple[str, MessageModel, concurrent.ConcurrentAnswer, concurrent.BatchVerdict[Msg]]] = [
    ("success", CLUSTERING, answer(OK), concurrent.BatchVerdict(False, 3, 0)),
    (
        "later: all go back",
        CLUSTERING,
        answer(LATER),
        concurrent.BatchVerdict(False, 0, 3, send_back=M),
    ),
    (
        "no answer is later",
        CLUSTERING,
        answer(None),
        concurrent.BatchVerdict(False, 0, 3, send_back=M),
    ),
    (
        "later ignores the ack index",
        CLUSTERING,
        answer(LATER, ack_index=1),
        concurrent.BatchVerdict(False, 0, 3, M),
    ),
    (
        "success up to an index",
        CLUSTERING,
        answer(OK, ack_index=0),
        concurrent.BatchVerdict(False, 1, 2, M[1:]),
    ),
    (
        "success of none",
        CLUSTERING,
        answer(OK, ack_index=-1),
        concurrent.BatchVerdict(False, 0, 3, M),
    ),
    (
        "an index below that is none",
        CLUSTERING,
        answer(OK, ack_index=-9),
        concurrent.BatchVerdict(False, 0, 3, M),
    ),
    (
        "an index beyond the end is all",
        CLUSTERING,
        answer(OK, ack_index=3),
        concurrent.BatchVerdict(False, 3, 0),
    ),
    (
        "broadcasting gives failures up",
        BROADCASTING,
        answer(LATER),
        concurrent.BatchVerdict(False, 0, 3, given_up=M),
    ),
    (
        "a dropped queue ignores all",
        CLUSTERING,
        answer(LATER, dropped=True),
        concurrent.BatchVerdict(True),
    ),
]


@pytest.mark.parametrize("profile", [V4, V5])
@pytest.mark.parametrize(("rule", "model", "said", "verdict"), ROWS, ids=[row[0] for row in ROWS])
def test_rule(
    rule: str,
    model: MessageModel,
    said: concurrent.ConcurrentAnswer,
    verdict: concurrent.BatchVerdict[Msg],
    profile: Profile,
) -> None:
    assert concurrent.judge(profile, model, M, said) == verdict


@pytest.mark.parametrize("profile", [V4, V5])
@pytest.mark.parametrize("model", [CLUSTERING, BROADCASTING])
def test_a_batch_that_is_done_succeeded_and_is_removed(
    profile: Profile, model: MessageModel
) -> None:
    """What a consumer relies on that takes such a batch out without asking for a verdict."""
    verdict = concurrent.judge(profile, model, M, answer(OK))
    assert verdict == concurrent.BatchVerdict(False, len(M), 0)
    assert concurrent.settle(M, ()) == concurrent.Settlement(tuple(M))


def test_an_empty_batch_is_nothing() -> None:
    assert concurrent.judge(V5, CLUSTERING, (), answer(LATER)) == concurrent.BatchVerdict(False)


def test_5x_does_not_send_back_what_the_sweep_removed() -> None:
    said = answer(LATER)
    assert concurrent.judge(V5, CLUSTERING, M, said, cached={5}) == concurrent.BatchVerdict(
        False, 0, 3, send_back=(M[1],), gone=(M[0], M[2])
    )
    assert concurrent.judge(V4, CLUSTERING, M, said, cached={5}) == concurrent.BatchVerdict(
        False, 0, 3, send_back=M
    )


def test_what_cannot_be_sent_back_is_tried_here_and_stays_cached() -> None:
    assert concurrent.settle(M, ()) == concurrent.Settlement(M)
    assert concurrent.settle(M, (M[1],)) == concurrent.Settlement((M[0], M[2]), again=(M[1],))


def test_offsets_only_go_forward_and_not_for_lost_queues() -> None:
    queue = q(0)
    assert concurrent.commit_step(queue, 7, dropped=False) == UpdateOffset(
        queue, 7, increase_only=True
    )
    assert concurrent.commit_step(queue, 0, dropped=False) == UpdateOffset(
        queue, 0, increase_only=True
    )
    assert concurrent.commit_step(queue, -1, dropped=False) is None
    assert concurrent.commit_step(queue, 7, dropped=True) is None


def test_sixteen_failures_unless_configured() -> None:
    assert (
        concurrent.max_reconsume_times(-1),
        concurrent.max_reconsume_times(0),
        concurrent.max_reconsume_times(3),
    ) == (16, 0, 3)


@pytest.mark.parametrize(("size", "parts"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), (9, [3])])
def test_pulled_messages_are_cut_into_batches(size: int, parts: list[int]) -> None:
    cut = list(batches(M, size))
    assert [len(part) for part in cut] == parts
    assert [message for part in cut for message in part] == list(M)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ((False, True, False, 0.0), ConsumeReturnType.EXCEPTION),
        ((False, False, False, 9999.0), ConsumeReturnType.RETURNNULL),
        ((True, False, True, 900.0), ConsumeReturnType.TIME_OUT),
        ((True, False, True, 899.0), ConsumeReturnType.FAILED),
        ((True, False, False, 1.0), ConsumeReturnType.SUCCESS),
    ],
)
def test_hooks_learn_how_a_call_ended(
    facts: tuple[bool, bool, bool, float], name: ConsumeReturnType
) -> None:
    answered, raised, failed, elapsed = facts
    assert name is return_type(
        answered=answered, raised=raised, failed=failed, elapsed=elapsed, timeout=900.0
    )


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
@settings(max_examples=150, deadline=None)
def test_what_is_committed_never_passes_an_unfinished_message(
    order: list[int], failed: set[int], not_sent: set[int]
) -> None:
    """Handlers finish batches of one in any order; some fail, and some of those cannot be sent."""
    cache = filled(*range(12))
    finished: set[int] = set()
    committed = 0
    for offset in order:
        batch = (Msg(offset),)
        said = answer(LATER if offset in failed else OK)
        verdict = concurrent.judge(V5, CLUSTERING, batch, said)
        lost = [m for m in verdict.send_back if m.queue_offset in not_sent]
        settlement = concurrent.settle(batch, lost)
        step = concurrent.commit_step(q(0), cache.remove(settlement.remove, 0.0), dropped=False)
        finished |= {m.queue_offset for m in settlement.remove}
        assert step is not None
        committed = max(committed, step.offset)
        unfinished = set(range(12)) - finished
        assert committed <= min(unfinished, default=12)
    assert committed == min(set(range(12)) - finished, default=12)


TIMEOUT = 900.0


def test_overdue_first_messages_are_sent_back_and_removed() -> None:
    queue = filled(1, 2, 3)
    queue.mark_started([Msg(1), Msg(2)], 0.0)
    sweep = concurrent.ExpirySweep(queue, TIMEOUT)
    assert concurrent.SWEEP_DELAY_LEVEL == 3
    for offset in (1, 2):
        message = sweep.next(901.0)
        assert message == Msg(offset)
        sweep.sent(message, 901.0)
    assert sweep.next(901.0) is None
    assert queue.first_offset() == 3


def test_a_message_is_overdue_only_after_the_timeout_and_if_it_was_begun() -> None:
    queue = filled(1, 2)
    assert concurrent.ExpirySweep(queue, TIMEOUT).next(9999.0) is None
    queue.mark_started([Msg(1)], 0.0)
    assert concurrent.ExpirySweep(queue, TIMEOUT).next(900.0) is None
    assert concurrent.ExpirySweep(queue, TIMEOUT).next(900.1) == Msg(1)


def test_only_the_first_message_counts() -> None:
    queue = filled(1, 2)
    queue.mark_started([Msg(2)], 0.0)
    assert concurrent.ExpirySweep(queue, TIMEOUT).next(9999.0) is None


def test_a_sweep_tries_at_most_sixteen_times() -> None:
    queue = filled(*range(40))
    queue.mark_started([Msg(n) for n in range(40)], 0.0)
    sweep = concurrent.ExpirySweep(queue, TIMEOUT)
    tries = 0
    while (message := sweep.next(1000.0)) is not None:
        sweep.sent(message, 1000.0)
        tries += 1
    assert (tries, queue.first_offset(), len(queue)) == (16, 16, 24)


def test_a_message_that_could_not_be_sent_comes_again() -> None:
    queue = filled(1, 2)
    queue.mark_started([Msg(1)], 0.0)
    sweep = concurrent.ExpirySweep(queue, TIMEOUT)
    assert [sweep.next(1000.0), sweep.next(1000.0), sweep.next(1000.0)] == [Msg(1), Msg(1), None]
    assert len(queue) == 2


def test_a_message_its_handler_finished_meanwhile_is_not_removed_twice() -> None:
    queue = filled(1, 2)
    queue.mark_started([Msg(1)], 0.0)
    sweep = concurrent.ExpirySweep(queue, TIMEOUT)
    message = sweep.next(1000.0)
    assert message is not None
    queue.remove([message], 1000.0)
    sweep.sent(message, 1000.0)
    assert (len(queue), queue.first_offset()) == (1, 2)


def test_a_message_pulled_again_starts_anew() -> None:
    queue = filled(1)
    queue.mark_started([Msg(1)], 0.0)
    queue.put([Msg(1)])
    assert concurrent.ExpirySweep(queue, TIMEOUT).next(9999.0) is None


def test_a_removed_message_leaves_no_start_time_behind() -> None:
    queue = filled(1)
    queue.mark_started([Msg(1)], 0.0)
    queue.remove([Msg(1)], 1.0)
    queue.put([Msg(1)])
    assert concurrent.ExpirySweep(queue, TIMEOUT).next(9999.0) is None
