"""A broker's check of one consume-queue store against another (5.x)."""

from pocketmq.model.value import WireValue


class StoreCheck(WireValue, frozen=True, kw_only=True):
    """What the check found: 0 fine, 1 different, 2 still running, 3 failed.

    (Java: CheckRocksdbCqWriteResult.)
    """

    check_result: str | None = None
    check_status: int = 0
