"""A drawing of matplotlib for use inside a page. What matplotlib does not write, such as a script, is refused.

The SVG is parsed and written anew, so that nothing of the file itself reaches the page unread.
"""

import re
import xml.etree.ElementTree as ET
from html import escape
from pathlib import Path

from gradient_dd.errors import BadRequestError, Unquoted, bad_request

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
ELEMENTS = {"svg", "defs", "style", "g", "path", "use", "text", "tspan", "clipPath", "rect", "image", "pattern"}
ATTRIBUTES = {
    *("id", "x", "y", "d", "width", "height", "viewBox", "version", "type", "transform"),
    *("style", "fill", "clip-path", "patternUnits"),
}
LEFT_OUT = "metadata"  # who drew it: the page says so itself
DEEPEST = 40  # elements inside each other; matplotlib needs 8
LOCAL = re.compile(r"url\(#([\w.-]+)\)")
MOVE = re.compile(r"(?:rotate|translate|scale|matrix)\([-+\d.,e\s]*\)")
PLAIN = re.compile(r"[\w\s.,:;#%+/'\"-]*")
STYLE_SHEET = re.compile(r"[\w\s.,:;#%*{}-]*")
INK = {"#000000": "currentColor", "#ffffff": "var(--paper, #fff)"}  # black and white follow the page's own colours
LINKS = {"use": re.compile(r"#[\w.-]+"), "image": re.compile(r"data:image/png;base64,[\w+/=\s]+")}


def inline_svg(file: Path, prefix: str) -> str:
    """Return the drawing of a file as text for a page; its ids get a prefix, so that those of two do not clash."""
    try:
        text = file.read_text(encoding="utf-8")
        return written(ET.fromstring(text[text.index("<svg") :]), prefix, DEEPEST)
    except BadRequestError as error:
        reason = str(error)
    except (ET.ParseError, ValueError) as error:
        reason = f"no SVG: {error}"
    rule, hint = "be as gradient-dd drew it", "Delete it, and it is drawn anew."
    raise bad_request(f"The figure {str(file)!r}", rule, Unquoted(reason), hint)


def written(element: ET.Element, prefix: str, deeper: int) -> str:
    """Return an element and all in it as text, or raise the words for what may not be there."""
    name = str(element.tag).removeprefix(SVG)
    if name == LEFT_OUT:
        return ""
    if name not in ELEMENTS or deeper == 0:
        raise BadRequestError(f"an element {name!r}")
    attributes = "".join(attribute(name, key, value, prefix) for key, value in element.items())
    text = element.text or ""
    if name == "style" and not STYLE_SHEET.fullmatch(text):
        raise BadRequestError(f"a style sheet {text!r}")
    inside = escape(text) + "".join(written(one, prefix, deeper - 1) + escape(one.tail or "") for one in element)
    return f"<{name}{attributes}>{inside}</{name}>" if inside else f"<{name}{attributes}/>"


def attribute(element: str, key: str, value: str, prefix: str) -> str:
    """Return an attribute as text, or raise the words for what may not be there."""
    if key == f"{XLINK}href":
        if element not in LINKS or not LINKS[element].fullmatch(value):
            raise BadRequestError(f"a link {value[:40]!r}")
        return f' xlink:href="{escape(value.replace("#", f"#{prefix}-", 1))}"'
    if key not in ATTRIBUTES or not PLAIN.fullmatch(MOVE.sub("", LOCAL.sub("", value))):
        raise BadRequestError(f"an attribute {key}={value[:40]!r}")
    value = f"{prefix}-{value}" if key == "id" else LOCAL.sub(rf"url(#{prefix}-\1)", value)
    if key in ("style", "fill"):
        for colour, follows in INK.items():
            value = value.replace(colour, follows)
    return f' {key}="{escape(value)}"'
