"""Stretches of time: their union, what they leave out, where they overlap."""

from collections.abc import Iterable

Span = tuple[float, float]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Join spans that touch or overlap, empty ones too."""
    result: list[Span] = []
    for since, until in sorted(spans):
        if result and since <= result[-1][1]:
            result[-1] = result[-1][0], max(result[-1][1], until)
        else:
            result.append((since, until))
    return result


def union(spans: Iterable[Span]) -> list[Span]:
    """Join spans that touch or overlap; empty ones fall away."""
    return joined(spans_of(spans))


def rest(whole: Span, taken: Iterable[Span]) -> list[Span]:
    """Return the parts of a span that are not taken."""
    left: list[Span] = []
    at = whole[0]
    for since, until in union(taken):
        if since > at:
            left.append((at, min(since, whole[1])))
        at = max(at, until)
        if at >= whole[1]:
            break
    if at < whole[1]:
        left.append((at, whole[1]))
    return [span for span in left if span[1] > span[0]]


def overlaps(spans: Iterable[Span]) -> list[Span]:
    """Return where two or more of the spans overlap."""
    edges = sorted(
        [(since, 1) for since, until in spans_of(spans)]
        + [(until, -1) for _, until in spans_of(spans)]
    )
    result: list[Span] = []
    depth, since = 0, 0.0
    for at, step in edges:
        if depth < 2 <= depth + step:
            since = at
        elif depth >= 2 > depth + step and at > since:
            result.append((since, at))
        depth += step
    return union(result)


def spans_of(spans: Iterable[Span]) -> list[Span]:
    """Leave empty spans out."""
    return [span for span in spans if span[1] > span[0]]


def total(spans: Iterable[Span]) -> float:
    """Return the length of spans that do not overlap."""
    return sum(until - since for since, until in spans)
