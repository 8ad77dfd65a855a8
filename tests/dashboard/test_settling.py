"""What is normal while members rebalance, and when it becomes a problem."""

from pocketmq.admin.findings import GroupFinding
from pocketmq.dashboard.remembered import GRACE, Settling, passing_text

UNOWNED = GroupFinding("unowned queues", "orders:a:1", "none owns them", "run rebalance")
SILENT = GroupFinding("member silent", "c1", "no response", "look at it")


def test_a_queue_without_owner_after_a_join_is_normal_for_a_while() -> None:
    settling = Settling()
    assert settling.sort([], ("c1",), 0.0) == ((), ())
    found = [SILENT, UNOWNED]
    assert settling.sort(found, ("c1", "c2"), 1.0) == ((SILENT,), (UNOWNED,))
    assert settling.sort(found, ("c1", "c2"), GRACE) == ((SILENT,), (UNOWNED,))
    assert settling.sort(found, ("c1", "c2"), 1.0 + GRACE) == ((SILENT, UNOWNED), ())


def test_it_is_a_problem_at_once_where_nothing_has_changed() -> None:
    settling = Settling()
    assert settling.sort([UNOWNED], ("c1",), 0.0) == ((UNOWNED,), ())
    assert settling.sort([UNOWNED], ("c1",), 1.0) == ((UNOWNED,), ())


def test_what_is_normal_is_told_without_alarm() -> None:
    assert passing_text(()) == ""
    assert passing_text((UNOWNED,)) == (
        "A rebalance is in progress. Normal for some seconds: unowned queues (orders:a:1)."
    )
