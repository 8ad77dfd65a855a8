"""Users and access rules of 5.x; what is not here is in the bodies."""

from pocketmq.protocol.header import Header


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
