"""A cache of requests that were allowed: rules need not be looked at again for the next ones."""

_MOST = 10_000
_LONGEST = 512
"""Characters; names of topics and groups have at most 255."""


class AllowedRequests(set[tuple[object, ...]]):
    """Requests that were allowed, by sender, code and deciding fields."""

    def remember(self, request: tuple[object, ...]) -> None:
        """Add a request, unless one of its parts is longer than any name."""
        if any(isinstance(part, str) and len(part) > _LONGEST for part in request):
            return
        if len(self) >= _MOST:
            self.clear()
        self.add(request)
