"""No usable answer: the connection failed, or no route or address of the server is known."""

from typing import Any

from pocketmq.errors.tree import MQError


class TransportError(MQError):
    """A connection could not be opened, was lost, or got no response in time."""

    retryable = True

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"{address}: {reason}")


class ConnectFailed(TransportError):
    """The connection was refused, or the host name does not resolve. Nothing was sent."""

    refresh_route = True


class ListenFailed(TransportError):
    """A server cannot listen: the port is in use, or the address is not this machine's."""

    retryable = False


class ConnectionLost(TransportError):
    """The connection was closed before the response arrived."""

    refresh_route = True
    outcome_unknown = True


class RequestTimedOut(TransportError):
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


class NameServersUnreachable(MQError):
    """None of the configured name servers answers, or none is configured.

    `reason` is the last one's error, if known.
    """

    retryable = True

    def __init__(self, addresses: tuple[str, ...], reason: str = "") -> None:
        self.addresses = addresses
        self.reason = reason
        if addresses and reason:
            text = f"no name server answers at {', '.join(addresses)}: {reason}"
        elif addresses:
            text = (
                f"no name server answers at {', '.join(addresses)}; check that one is running there"
            )
        else:
            text = "no name server address is configured; set one, such as '127.0.0.1:9876'"
        super().__init__(text)


class SendFailed(MQError):
    """A send failed after its last try, whose error is `last_error` (also `__cause__`).

    `attempts` counts the tries made, `broker` is the last one asked, `elapsed` the seconds spent.
    `last_error` is None when the timeout passed before the first try.
    `outcome_unknown` is true when any of the tries may have stored the message although no
    receipt came: resending it may store it twice. `code` is the broker's response code, if a
    broker's refusal ended the send. `receipts` are those of the parts of a batch that were stored
    before this one.
    """

    receipts: tuple[Any, ...] = ()

    def __init__(
        self,
        topic: str,
        broker: str | None,
        attempts: int,
        elapsed: float,
        last_error: MQError | None,
        *,
        outcome_unknown: bool = False,
    ) -> None:
        self.topic = topic
        self.broker = broker
        self.attempts = attempts
        self.elapsed = elapsed
        self.last_error = last_error
        self.code: int | None = getattr(last_error, "code", None)
        self.retryable = last_error is None or last_error.retryable
        self.refresh_route = last_error is not None and last_error.refresh_route
        self.outcome_unknown = outcome_unknown or (
            last_error is not None and last_error.outcome_unknown
        )
        super().__init__(self._text())
        self.__cause__ = last_error

    def _text(self) -> str:
        if self.attempts == 0:
            tries = f"not sent within {self.elapsed:.3f} s"
        else:
            times = "1 try" if self.attempts == 1 else f"{self.attempts} tries"
            tries = f"not acknowledged after {times} in {self.elapsed:.3f} s"
        if self.broker:
            tries += f", last by broker {self.broker!r}"
        cause = f": {self.last_error}" if self.last_error else ""
        return f"message to topic {self.topic!r} {tries}{cause}; {self._advice()}"

    def _advice(self) -> str:
        if self.outcome_unknown:
            return "the message may be stored: resend it only if consumers are idempotent"
        if self.retryable:
            return "the message was not stored and can be resent"
        return "the message was not stored, and resending it unchanged will fail again"
