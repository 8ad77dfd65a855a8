"""Users and access rules of 5.x; what is not here is in the bodies."""

from pocketmq.protocol.bodies.access import Acl, User
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.header import Header
from pocketmq.protocol.request import NoHeader, request


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
    """Gives a subject rules."""

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
