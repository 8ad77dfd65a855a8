"""Access rules of 4.9, gone in 5.x."""

from pocketmq.protocol.bodies.access import AccountTable
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.header import Header
from pocketmq.protocol.request import NoHeader, request


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
    Code.UPDATE_AND_CREATE_ACL_CONFIG, CreateAccessConfigRequest, NoHeader
)
DELETE_ACL_CONFIG = request(Code.DELETE_ACL_CONFIG, DeleteAccessConfigRequest, NoHeader)
GET_BROKER_CLUSTER_ACL_INFO = request(
    Code.GET_BROKER_CLUSTER_ACL_INFO, NoHeader, GetBrokerAclVersionResponse
)
UPDATE_GLOBAL_WHITE_ADDRS_CONFIG = request(
    Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, UpdateGlobalWhiteAddrsRequest, NoHeader
)
GET_BROKER_CLUSTER_ACL_CONFIG = request(
    Code.GET_BROKER_CLUSTER_ACL_CONFIG, NoHeader, NoHeader, result=json_of(AccountTable)
)
