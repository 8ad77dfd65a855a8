"""A client is used where or when it cannot work: after its end, in a fork, on its loop, twice."""

from pocketmq.errors.invalid import InvalidInput
from pocketmq.errors.tree import MQError


class ClientClosed(MQError):
    """A client was used before it started or after it stopped. Nothing was sent."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        super().__init__(
            f"{client_id} is not running: use it inside `with`, or between start() and close(); "
            "one that was closed does not start again, make a new one"
        )


class ClientForked(MQError):
    """A client was used in a process forked from the one it runs in. Nothing was sent.

    Its connections belong to the parent: two processes writing to one socket would garble both.
    """

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        super().__init__(
            f"the client {client_id!r} runs in the parent process and not in this fork of it; "
            "make a new client after the fork"
        )


class WouldBlockLoop(MQError):
    """A blocking call was made on the thread that would have to carry it out. Nothing was sent."""

    def __init__(self, loop: str) -> None:
        self.loop = loop
        super().__init__(
            f"a blocking call on the event loop's own thread ({loop!r}) would never end; "
            "coroutines use pocketmq.aio, and what blocks is a plain function (def)"
        )


class GroupTaken(InvalidInput):
    """A client id stands for one member of a group, and there is one already."""

    def __init__(self, kind: str, group: str, client_id: str) -> None:
        self.kind = kind
        self.group = group
        self.client_id = client_id
        super().__init__(
            f"client {client_id!r} has a {kind} in group {group!r} already; "
            "stop that one, or give this one another group or instance name"
        )
