"""The settings of access control, by RocketMQ's keys. Read at the start, never over the wire."""

from typing import TypeVar

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.net import DoorSettings

S = TypeVar("S", bound=msgspec.Struct)


class InitialUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user as `initAuthenticationUser` gives it."""

    username: str = ""
    password: str = ""


class InnerCredentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A user as `innerClientAuthenticationCredentials` gives it."""

    access_key: str = ""
    secret_key: str = ""
    security_token: str = ""

    def __repr__(self) -> str:
        return f"InnerCredentials(access_key={self.access_key!r})"


class AccessSettings(DoorSettings, frozen=True, kw_only=True, rename="camel"):
    """Which kinds of access control there are, and whom a new broker knows."""

    # 4.x: accounts in a file
    acl_enable: bool = False
    acl_file: str = ""  # ours; Java: conf/plain_acl.yml and conf/acl below its home

    # 5.x: users and rules
    authentication_enabled: bool = False
    authorization_enabled: bool = False
    authentication_whitelist: str = ""  # request codes, joined by `,`
    authorization_whitelist: str = ""
    init_authentication_user: str = ""  # {"username":…,"password":…}, a super user
    inner_client_authentication_credentials: str = ""  # {"accessKey":…,"secretKey":…}, the same;
    # and as this user the broker asks its name servers
    migrate_auth_from_v1_enabled: bool = msgspec.field(
        name="migrateAuthFromV1Enabled", default=False
    )

    java_authorization: bool = False
    """Ours: ask for no more rights than a Java broker does."""
    require_signed_code: bool = False
    """Ours: refuse changing requests whose signature is not bound to their code."""

    def __post_init__(self) -> None:
        self.server_tls()
        self.initial_users()
        if (self.acl_enable or self.migrate_auth_from_v1_enabled) and not self.acl_file:
            raise InvalidInput("aclEnable needs aclFile, the file of the accounts")

    @property
    def guarded(self) -> bool:
        """Whether anybody is asked who they are."""
        return self.acl_enable or self.authentication_enabled

    @property
    def knows_people(self) -> bool:
        """Whether there is anything to be set up at the start."""
        enabled = self.guarded or self.authorization_enabled or self.migrate_auth_from_v1_enabled
        return enabled or bool(self.initial_users())

    def initial_users(self) -> list[tuple[str, str]]:
        """Give names and passwords of the super users a broker begins with.

        Raises `InvalidInput` for what cannot be read; it may be a secret and is not shown.
        """
        found = []
        if self.init_authentication_user.strip():
            user = _read("initAuthenticationUser", self.init_authentication_user, InitialUser)
            found.append((user.username, user.password))
        inner = self.inner_user()
        if inner is not None:
            found.append((inner.access_key, inner.secret_key))
        for name, password in found:
            if not name.strip() or not password.strip():
                raise InvalidInput("a user the broker begins with needs a name and a password")
        return found

    def inner_user(self) -> InnerCredentials | None:
        """Give the user as whom the broker asks its name servers. Raises as `initial_users`."""
        text = self.inner_client_authentication_credentials
        if not text.strip():
            return None
        return _read("innerClientAuthenticationCredentials", text, InnerCredentials)


def _read(key: str, text: str, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise InvalidInput(f"{key} is a JSON object with {names}") from None
