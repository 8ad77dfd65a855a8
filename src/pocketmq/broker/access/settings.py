"""The settings of access control, by RocketMQ's keys. Read at the start, never over the wire."""

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model.secrets import InnerCredentials, initial_users, inner_credentials
from pocketmq.net import HandshakeSettings


class AccessSettings(HandshakeSettings, frozen=True, kw_only=True, rename="camel"):
    """Which kinds of access control are enabled, and the first users of a new broker."""

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
    # and as this user the broker asks its name servers, unless the next names another
    name_server_credentials: str = ""  # ours; the same, but no user of this broker
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
        self.name_server_user()
        if (self.acl_enable or self.migrate_auth_from_v1_enabled) and not self.acl_file:
            raise InvalidInput("aclEnable needs aclFile, the file of the accounts")

    @property
    def guarded(self) -> bool:
        """Whether requests must be authenticated."""
        return self.acl_enable or self.authentication_enabled

    @property
    def knows_people(self) -> bool:
        """Whether there are users or accounts to set up at the start."""
        enabled = self.guarded or self.authorization_enabled or self.migrate_auth_from_v1_enabled
        return enabled or bool(self.initial_users())

    def initial_users(self) -> list[tuple[str, str]]:
        """Return names and passwords of the super users a broker begins with.

        Raises `InvalidInput` for what cannot be read; it may be a secret and is not shown.
        """
        return initial_users(
            self.init_authentication_user, self.inner_client_authentication_credentials
        )

    def name_server_user(self) -> InnerCredentials | None:
        """Return the user that signs requests to name servers. Raises as `initial_users`."""
        own = inner_credentials(self.name_server_credentials, "nameServerCredentials")
        return own or inner_credentials(self.inner_client_authentication_credentials)
