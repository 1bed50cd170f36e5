"""Text from a file, made safe to print: a terminal must not take any of it for a command."""


def printable(text: str) -> str:
    """Return a text with every character written out that is not seen: escapes, backspaces, marks of direction."""
    return "".join(one if one == "\n" or one.isprintable() else ascii(one)[1:-1] for one in text)
