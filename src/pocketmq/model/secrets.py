"""Values that hold secrets and never print them.

`InitialUser` and `InnerCredentials` are the users that a server's settings name, as RocketMQ writes
them: JSON objects in two settings. Text that cannot be parsed may be a secret, so errors never
quote it.
"""

from typing import Any, ClassVar, TypeVar

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model.value import WireValue

HIDDEN = "***"
S = TypeVar("S", bound=msgspec.Struct)


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


class InitialUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user as `initAuthenticationUser` gives it."""

    username: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"InitialUser(username={self.username!r})"


class InnerCredentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A user as `innerClientAuthenticationCredentials` gives it."""

    access_key: str = ""
    secret_key: str = ""
    security_token: str = ""

    def __repr__(self) -> str:
        return f"InnerCredentials(access_key={self.access_key!r})"


def initial_users(initial: str, inner: str) -> list[tuple[str, str]]:
    """Return names and passwords of the super users in two settings. Raises `InvalidInput`."""
    found = []
    if initial.strip():
        user = _read("initAuthenticationUser", initial, InitialUser)
        found.append((user.username, user.password))
    credentials = inner_credentials(inner)
    if credentials is not None:
        found.append((credentials.access_key, credentials.secret_key))
    for name, password in found:
        if not name.strip() or not password.strip():
            raise InvalidInput("an initial user needs a name and a password")
    return found


def inner_credentials(
    text: str, key: str = "innerClientAuthenticationCredentials"
) -> InnerCredentials | None:
    """Return the credentials a setting holds, or None for an empty one. Raises `InvalidInput`."""
    return _read(key, text, InnerCredentials) if text.strip() else None


def _read(key: str, text: str, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise InvalidInput(f"{key} must be a JSON object with {names}") from None
