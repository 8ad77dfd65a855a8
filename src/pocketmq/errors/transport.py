"""No usable answer: the connection failed, or no route or address of the server is known.

Timeouts are also Python's `TimeoutError`, and connections that fail its `ConnectionError`, so that
code which retries on those retries on these. `errno` and `strerror` are None: `OSError` reads them
from its arguments, and ours are one text.
"""

from pocketmq.errors.tree import MQError


class TransportError(MQError):
    """A connection could not be opened, was lost, or got no response in time."""

    retryable = True

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"{address}: {reason}")


class ConnectFailed(TransportError, ConnectionError):
    """The connection was refused, or the host name does not resolve. Nothing was sent."""

    refresh_route = True


class ListenFailed(TransportError):
    """A server cannot listen: the port is in use, or the address is not this machine's."""

    retryable = False


class ConnectionLost(TransportError, ConnectionError):
    """The connection was closed before the response arrived."""

    refresh_route = True
    outcome_unknown = True


class RequestTimedOut(TransportError, TimeoutError):
    """No response arrived within the timeout."""

    outcome_unknown = True

    def __init__(self, address: str, request: str, timeout: float) -> None:
        super().__init__(address, f"no response to {request} within {timeout:g} s")
        self.request = request
        self.timeout = timeout


class RequestNotSent(RequestTimedOut):
    """The timeout passed while the request waited for space in the socket. Nothing was sent."""

    outcome_unknown = False

    def __init__(self, address: str, request: str, timeout: float) -> None:
        super().__init__(address, request, timeout)
        self.reason = f"{request} was not sent within {timeout:g} s: the peer reads too slowly"
        self.args = (f"{address}: {self.reason}",)


class RouteNotFound(MQError):
    """No name server has a route for this topic."""

    retryable = True
    refresh_route = True

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(
            f"no route for topic {topic!r}; create the topic, or check the name server address"
        )


class BrokerNotFound(MQError):
    """The route names a broker without the address of its master. Nothing was sent."""

    retryable = True
    refresh_route = True

    def __init__(self, broker: str) -> None:
        self.broker = broker
        super().__init__(
            f"no master address for broker {broker!r}; check that its master is running"
        )


class QueueNotSelected(MQError):
    """No queue of the topic matches the request. Nothing was sent."""

    refresh_route = True

    def __init__(self, topic: str, reason: str) -> None:
        self.topic = topic
        self.reason = reason
        super().__init__(f"cannot select a queue of topic {topic!r}: {reason}")


class NameServersUnreachable(MQError, ConnectionError):
    """None of the configured name servers responds, or none is configured.

    `reason` is the last one's error, if known.
    """

    retryable = True

    def __init__(self, addresses: tuple[str, ...], reason: str = "") -> None:
        self.addresses = addresses
        self.reason = reason
        if addresses and reason:
            text = f"no name server responds at {', '.join(addresses)}: {reason}"
        elif addresses:
            text = (
                f"no name server responds at {', '.join(addresses)}; "
                "check that one is running there"
            )
        else:
            text = (
                "no name server address is configured; pass one, such as '127.0.0.1:9876', or set "
                "NAMESRV_ADDR"
            )
        super().__init__(text)
