"""Enumerations whose members Java finds by name in any case."""

from enum import StrEnum
from typing import Self


class Named(StrEnum):
    """Members are written as Java writes them, and read in upper or lower case."""

    @classmethod
    def named(cls, text: str | None) -> Self | None:
        """Give the member of that name; None if there is none."""
        return next((each for each in cls if each.lower() == (text or "").lower()), None)
