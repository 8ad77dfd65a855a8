"""Moving from one cluster to another: what stands in the way."""

from pocketmq.errors.tree import MQError


class CannotMigrate(MQError):
    """A topic, group or queue cannot be moved as things are; what was copied stays and counts."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject} cannot be migrated: {reason}")


class MigrationFileUnusable(MQError):
    """The file that keeps how far a migration is cannot be used, or belongs to another one."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"the migration's file {path!r} cannot be used: {reason}")
