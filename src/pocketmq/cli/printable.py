"""Text that no terminal obeys: names come from files and peers, and may hold control characters."""


def printable(text: str) -> str:
    r"""Give the text with everything that is not printable as an escape, such as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
