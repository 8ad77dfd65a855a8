"""Access rules of 4.9, gone in 5.x."""

from pocketmq.protocol.header import Header


class CreateAccessConfigRequest(Header, frozen=True, kw_only=True):
    """Creates or changes an account with its permissions."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


class DeleteAccessConfigRequest(Header, frozen=True, kw_only=True):
    """Deletes an account."""

    access_key: str


class GetBrokerAclVersionResponse(Header, frozen=True, kw_only=True):
    """The state of a broker's access rules."""

    version: str
    all_acl_file_version: str | None = None
    broker_name: str
    broker_addr: str
    cluster_name: str


class UpdateGlobalWhiteAddrsRequest(Header, frozen=True, kw_only=True):
    """Sets the addresses that need no signature."""

    global_white_addrs: str
    acl_file_full_path: str
