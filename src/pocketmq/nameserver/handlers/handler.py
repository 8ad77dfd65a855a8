"""What every handler looks like."""

from collections.abc import Callable, Hashable

from pocketmq.errors import ResponseCode
from pocketmq.nameserver.state import NameServerState
from pocketmq.protocol.command import Command

Handler = Callable[[NameServerState, Hashable, Command], Command]
"""Takes the state, the connection a request came on, and the request."""

SUCCESS = int(ResponseCode.SUCCESS)
