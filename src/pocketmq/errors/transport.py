"""No usable answer came: the way to the server is broken, or nobody knows the way."""

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


class RouteNotFound(MQError):
    """No name server knows brokers for this topic."""

    retryable = True
    refresh_route = True

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(
            f"no route for topic {topic!r}; create it, or check the name server address"
        )


class NameServersUnreachable(MQError):
    """None of the configured name servers answers."""

    retryable = True

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self.addresses = addresses
        super().__init__(f"no name server answers at {', '.join(addresses)}; is one running there?")


class SendFailed(MQError):
    """A send gave up after all its tries; `__cause__` is the last try's error."""

    def __init__(
        self, topic: str, broker: str | None, attempts: int, elapsed: float, last_error: MQError
    ) -> None:
        self.topic = topic
        self.broker = broker
        self.attempts = attempts
        self.elapsed = elapsed
        self.last_error = last_error
        self.may_be_stored = last_error.outcome_unknown
        stored = "it may be stored" if self.may_be_stored else "it was not stored"
        super().__init__(
            f"message to {topic!r} not acknowledged after {attempts} tries in {elapsed:.3f} s "
            f"(last broker {broker or 'none'}, {stored}): {last_error}"
        )
