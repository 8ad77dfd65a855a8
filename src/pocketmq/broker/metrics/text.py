"""Prometheus' text format: one sample a line, and what stands before the first of a name."""

from typing import TypeAlias

Labels: TypeAlias = dict[str, str]

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def sample(name: str, labels: Labels, value: int) -> str:
    """Give one line; labels in order of their names."""
    shown = ",".join(f'{key}="{text.translate(_ESCAPED)}"' for key, text in sorted(labels.items()))
    return f"{name}{{{shown}}} {value}\n"


def header(kind: str, name: str, about: str) -> str:
    """Give the two lines before the samples of a name."""
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
