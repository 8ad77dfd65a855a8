"""The root of the error tree: flags, and pickling that works for every subclass.

Subclasses take their facts as constructor arguments, keep them as attributes and build the
message themselves, so that one kind of failure always has the same text.
"""

from typing import Any, TypeVar

E = TypeVar("E", bound="MQError")


class MQError(Exception):
    """Any error PocketMQ raises.

    The flags belong to the class; an error that sums up others (`SendFailed`) sets its own.
    """

    retryable: bool = False
    refresh_route: bool = False
    outcome_unknown: bool = False

    @property
    def message(self) -> str:
        """The whole message, as `str(error)` returns it."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.args, self.__dict__)


def _revive(cls: type[E], args: tuple[Any, ...], state: dict[str, Any]) -> E:
    """Rebuild an error from its parts without calling its constructor."""
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error
