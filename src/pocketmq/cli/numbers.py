"""Numbers as options."""

from math import isfinite
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range of floats without `inf`, and without `nan`, which no bound keeps out."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number, or fail as click's types do."""
        found = float(super().convert(value, param, ctx))
        if not isfinite(found):
            self.fail(f"{value!r} is not a number to count with.", param, ctx)
        return found
