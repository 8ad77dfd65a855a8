"""The fault table that threads share decides as the one it is made of."""

import threading

from pocketmq import V4, V5
from pocketmq.client.producer.faults import SharedFaultTable


def test_it_keeps_the_rules_and_its_lock_to_itself() -> None:
    for profile in (V4, V5):
        table = SharedFaultTable(profile, worst_index=1)
        table.update("a", 0.01, isolate=False, now=0.0)
        table.update("b", 0.01, isolate=True, now=0.0)
        assert [table.is_available(name, 1.0) for name in ("a", "b")] == [True, False]
        assert table.least_bad(1.0) == "a"
        assert [health.broker for health in table.snapshot(1.0)] == ["a", "b"]
        assert table.take_due(1.0, 2.0) == ["a", "b"]
        table.forget("b")
        assert table.is_available("b", 1.0)


def test_threads_that_ask_and_tell_at_once_do_not_disturb_each_other() -> None:
    table = SharedFaultTable(V4)
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for step in range(300):
                table.update(f"{number} {step % 7}", 1.0, isolate=True, now=float(step))
                table.least_bad(float(step))
                table.forget(f"{number} {(step + 3) % 7}")
                table.snapshot(float(step))
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
