"""No usable answer came: the way to the server is broken, or nobody knows the way."""

from typing import Any

from pocketmq.errors.tree import MQError


class TransportError(MQError):
    """A connection could not be made, broke, or stayed silent."""

    retryable = True

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"{address}: {reason}")


class ConnectFailed(TransportError):
    """Nobody listens there, or the name does not resolve. Nothing was sent."""

    refresh_route = True


class ListenFailed(TransportError):
    """A server cannot listen there: the port is taken, or the address is not this machine's."""

    retryable = False


class ConnectionLost(TransportError):
    """The connection closed before the answer came."""

    refresh_route = True
    outcome_unknown = True


class RequestTimedOut(TransportError):
    """The answer did not come in time."""

    outcome_unknown = True

    def __init__(self, address: str, request: str, timeout: float) -> None:
        super().__init__(address, f"no answer to {request} within {timeout:g} s")
        self.request = request
        self.timeout = timeout


class RequestNotSent(RequestTimedOut):
    """The request waited for room in the socket until its time was over. Nothing was sent."""

    outcome_unknown = False

    def __init__(self, address: str, request: str, timeout: float) -> None:
        super().__init__(address, request, timeout)
        self.reason = f"{request} was not sent within {timeout:g} s: the peer takes too little"
        self.args = (f"{address}: {self.reason}",)


class RouteNotFound(MQError):
    """No name server knows brokers for this topic."""

    retryable = True
    refresh_route = True

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(
            f"no route for topic {topic!r}; create it, or check the name server address"
        )


class BrokerNotFound(MQError):
    """A broker is named in the route, but no address of its master is known. Nothing was sent."""

    retryable = True
    refresh_route = True

    def __init__(self, broker: str) -> None:
        self.broker = broker
        super().__init__(f"no address is known for broker {broker!r}; is its master running?")


class QueueNotSelected(MQError):
    """No queue of the topic fits what was asked for. Nothing was sent."""

    refresh_route = True

    def __init__(self, topic: str, reason: str) -> None:
        self.topic = topic
        self.reason = reason
        super().__init__(f"no queue of topic {topic!r} was selected: {reason}")


class NameServersUnreachable(MQError):
    """None of the configured name servers answers, or none is configured.

    `reason` tells what the last one met, if that is known.
    """

    retryable = True

    def __init__(self, addresses: tuple[str, ...], reason: str = "") -> None:
        self.addresses = addresses
        self.reason = reason
        if addresses and reason:
            text = f"no name server answers at {', '.join(addresses)}: {reason}"
        elif addresses:
            text = f"no name server answers at {', '.join(addresses)}; is one running there?"
        else:
            text = "no name server address is set; give one, such as '127.0.0.1:9876'"
        super().__init__(text)


class SendFailed(MQError):
    """A send gave up; `last_error` (also `__cause__`) is what its last try met.

    `attempts` counts the tries made, `broker` is the last one asked, `elapsed` the seconds spent.
    `last_error` is None when the time was over before the first try.
    `outcome_unknown` is true when any of the tries may have stored the message although no
    receipt came: sending it again may store it twice. `code` is the broker's response code, if a
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
            return "it may be stored, so sending it again may store it twice"
        if self.retryable:
            return "it was not stored and can be sent again"
        return "it was not stored, and sending it again unchanged will not help"
