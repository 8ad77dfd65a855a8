"""Where the receipt of a submitted message goes."""

from typing import Protocol

from pocketmq.model import SendReceipt


class Taker(Protocol):
    """Where a receipt, or the error instead of it, goes; called on the loop, and once."""

    def done(self) -> bool:
        """Whether it is not wanted any more."""

    def set_result(self, result: SendReceipt, /) -> None:
        """Take the receipt."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Take the error."""
