"""A closed gate's limit is exact, whatever threads do."""

import sys
import threading

from pocketmq.client.group.start_gate import StartGate


def test_a_gate_counts_what_began_and_closes_behind_it() -> None:
    gate = StartGate(5)
    assert gate.enter(5)
    assert gate.enter(7)
    assert gate.close() == 8
    assert gate.limit == 8
    assert gate.enter(6), "a message below one that has begun is this owner's"
    assert not gate.enter(8)
    assert gate.close(100) == 8, "a limit that was told never moves"


def test_what_needs_no_handler_counts_as_begun() -> None:
    gate = StartGate(5)
    assert gate.close(settled=9) == 9
    assert gate.enter(8)
    assert not gate.enter(9)


def test_nothing_begins_behind_a_fence() -> None:
    gate = StartGate(0)
    gate.fence()
    assert not gate.enter(0)
    gate.lift()
    assert gate.enter(0)
    gate.close()
    gate.fence()
    assert not gate.enter(0)


def test_the_limit_is_exact_while_threads_begin_messages() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            gate, taken, begun = StartGate(0), iter(range(5000)), list[int]()
            started = threading.Barrier(5)

            def work() -> None:
                started.wait()  # noqa: B023
                while (offset := next(taken, None)) is not None:  # noqa: B023
                    if gate.enter(offset):  # noqa: B023
                        begun.append(offset)  # noqa: B023
                    else:
                        return

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            started.wait()
            limit = gate.close()
            for thread in threads:
                thread.join()
            assert all(offset < limit for offset in begun)
            assert limit == 0 or max(begun) == limit - 1
    finally:
        sys.setswitchinterval(before)
