"""What an admin can be told."""

from typing import ClassVar

import msgspec

from pocketmq.client.checks import check_range, check_seconds
from pocketmq.client.options import ClientSettings
from pocketmq.model.names import TOOLS_GROUP, check_group


class AdminOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an admin works. Raises `InvalidInput` for a value that can never work."""

    group: str = TOOLS_GROUP
    """In whose name messages are read; nothing is committed."""
    timeout: float = 5.0
    """Seconds for each question to a server."""
    parallel: int = 64
    """How many questions may be under way at once."""

    _MOST_PARALLEL: ClassVar = 4096

    def __post_init__(self) -> None:
        check_group(self.group)
        check_seconds("timeout", self.timeout, at_least=0.001)
        check_range("parallel", self.parallel, 1, self._MOST_PARALLEL)


class AdminSettings(ClientSettings, total=False):
    """The fields of `AdminOptions` and `ClientOptions` as keywords."""

    timeout: float
    parallel: int
