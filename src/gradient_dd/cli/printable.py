"""Text from a file, made safe to print: a terminal must not take any of it for a command."""

from unicodedata import category

KEPT = "\n\t"


def printable(text: str) -> str:
    """Return a text with every control character, and every mark that turns the direction of writing, written out."""
    return "".join(one if one in KEPT or not is_control(one) else one.encode("unicode_escape").decode() for one in text)


def is_control(character: str) -> bool:
    """Return whether a character does something instead of being seen: escapes, backspaces, bidirectional marks."""
    return category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
