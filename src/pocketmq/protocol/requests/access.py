"""Access control: users and policies of 5.x, accounts of 4.9. Secrets never print."""

from typing import ClassVar

from pocketmq.model import WireValue
from pocketmq.model.secrets import Guarded
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header
from pocketmq.protocol.request import NoHeader, RequestRight, json_of, request


class Account(Guarded, frozen=True, kw_only=True):
    """An account of a 4.x broker (Java: PlainAccessConfig)."""

    SECRET: ClassVar[frozenset[str]] = frozenset({"secret_key"})

    access_key: str | None = None
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = None
    group_perms: list[str] | None = None


class AccountTable(WireValue, frozen=True, kw_only=True):
    """Every account of a 4.x broker, and the addresses it trusts (Java: AclConfig)."""

    global_white_addrs: list[str] | None = None
    plain_access_configs: list[Account] | None = None


class User(Guarded, frozen=True, kw_only=True):
    """A user of a 5.x broker (Java: UserInfo)."""

    SECRET: ClassVar[frozenset[str]] = frozenset({"password"})

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


class PolicyEntry(WireValue, frozen=True, kw_only=True):
    """One rule: actions on a resource, from where, allowed or denied."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None


class Policy(WireValue, frozen=True, kw_only=True):
    """Rules of one kind, `Custom` or `Default`."""

    policy_type: str | None = None
    entries: list[PolicyEntry] | None = None


class Acl(WireValue, frozen=True, kw_only=True):
    """What a subject such as `User:alice` may do on a 5.x broker (Java: AclInfo)."""

    subject: str | None = None
    policies: list[Policy] | None = None


class CreateUserRequest(Header, frozen=True, kw_only=True):
    """Creates a user."""

    username: str | None = None


class UpdateUserRequest(Header, frozen=True, kw_only=True):
    """Changes a user."""

    username: str | None = None


class DeleteUserRequest(Header, frozen=True, kw_only=True):
    """Deletes a user."""

    username: str | None = None


class GetUserRequest(Header, frozen=True, kw_only=True):
    """Asks for a user."""

    username: str | None = None


class ListUsersRequest(Header, frozen=True, kw_only=True):
    """Asks for users by part of their name."""

    filter: str | None = None


class CreateAclRequest(Header, frozen=True, kw_only=True):
    """Grant rules to a subject."""

    subject: str | None = None


class UpdateAclRequest(Header, frozen=True, kw_only=True):
    """Changes a subject's rules."""

    subject: str | None = None


class DeleteAclRequest(Header, frozen=True, kw_only=True):
    """Deletes a subject's rules, or those for one resource."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


class GetAclRequest(Header, frozen=True, kw_only=True):
    """Asks for a subject's rules."""

    subject: str | None = None


class ListAclsRequest(Header, frozen=True, kw_only=True):
    """Asks for rules by parts of subject and resource."""

    subject_filter: str | None = None
    resource_filter: str | None = None


AUTH_CREATE_USER = request(Code.AUTH_CREATE_USER, CreateUserRequest, NoHeader, body=json_of(User))
AUTH_UPDATE_USER = request(Code.AUTH_UPDATE_USER, UpdateUserRequest, NoHeader, body=json_of(User))
AUTH_DELETE_USER = request(Code.AUTH_DELETE_USER, DeleteUserRequest, NoHeader)
AUTH_GET_USER = request(Code.AUTH_GET_USER, GetUserRequest, NoHeader, result=json_of(User))
AUTH_LIST_USER = request(
    Code.AUTH_LIST_USER, ListUsersRequest, NoHeader, result=json_of(list[User])
)
AUTH_CREATE_ACL = request(Code.AUTH_CREATE_ACL, CreateAclRequest, NoHeader, body=json_of(Acl))
AUTH_UPDATE_ACL = request(Code.AUTH_UPDATE_ACL, UpdateAclRequest, NoHeader, body=json_of(Acl))
AUTH_DELETE_ACL = request(Code.AUTH_DELETE_ACL, DeleteAclRequest, NoHeader)
AUTH_GET_ACL = request(Code.AUTH_GET_ACL, GetAclRequest, NoHeader, result=json_of(Acl))
AUTH_LIST_ACL = request(Code.AUTH_LIST_ACL, ListAclsRequest, NoHeader, result=json_of(list[Acl]))


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


UPDATE_AND_CREATE_ACL_CONFIG = request(
    Code.UPDATE_AND_CREATE_ACL_CONFIG,
    CreateAccessConfigRequest,
    NoHeader,
    right=RequestRight.on_cluster("Update"),
)
DELETE_ACL_CONFIG = request(
    Code.DELETE_ACL_CONFIG,
    DeleteAccessConfigRequest,
    NoHeader,
    right=RequestRight.on_cluster("Update"),
)
GET_BROKER_CLUSTER_ACL_INFO = request(
    Code.GET_BROKER_CLUSTER_ACL_INFO,
    NoHeader,
    GetBrokerAclVersionResponse,
    right=RequestRight.on_cluster("Get"),
)
UPDATE_GLOBAL_WHITE_ADDRS_CONFIG = request(
    Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    UpdateGlobalWhiteAddrsRequest,
    NoHeader,
    right=RequestRight.on_cluster("Update"),
)
GET_BROKER_CLUSTER_ACL_CONFIG = request(
    Code.GET_BROKER_CLUSTER_ACL_CONFIG,
    NoHeader,
    NoHeader,
    result=json_of(AccountTable),
    right=RequestRight.on_cluster("Update"),  # it holds secrets
)
