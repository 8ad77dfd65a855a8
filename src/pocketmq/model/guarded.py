"""Values that hold secrets, and never show them."""

from typing import Any, ClassVar

import msgspec

from pocketmq.model.value import WireValue

HIDDEN = "***"


class Guarded(WireValue, frozen=True, kw_only=True):
    """A value whose fields named in `SECRET` print as `***`, and so do fields it does not know."""

    SECRET: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        shown: list[tuple[str, Any]] = []
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if field.name == "extra":
                value = dict.fromkeys(value, HIDDEN)
            elif field.name in self.SECRET and value is not None:
                value = HIDDEN
            shown.append((field.name, value))
        return shown
