"""Text of others in text of ours: one function for each kind of document.

Names, messages and files come from models and libraries of ops, and may be any text at all. What they
become part of takes them through the function here that is for its kind, and through no other way;
`tests/architecture/test_escaping.py` sees to it. Identifiers of programs are given out by
`opkernel.runtime.plan.text.Identifiers`, strings of programs are written by `repr`.
"""

import re
from typing import Any

_UNPLAIN = re.compile(r"[^ -~]")
_LONGEST_MEMBER = 65_000
"""The most bytes of an array's name in an archive: zip has 16 bits, and NumPy adds to the name."""


def terminal_text(text: str, keep: str = "\n") -> str:
    r"""Text that a terminal shows as it is: characters that steer one, or hide, become Python escapes.

    Escaped is all that is not printable: control characters, C1 (`\x9b`) among them, marks that
    change the direction of text, line separators, lone surrogates.

    Args:
        text: any text.
        keep: the characters that stay beside the printable ones.
    """
    if text.isprintable():
        return text
    return _UNPLAIN.sub(
        lambda found: (
            found[0] if found[0].isprintable() or found[0] in keep else repr(found[0])[1:-1]
        ),
        text,
    )


def docstring(text: str) -> str:
    """Text as a docstring of Python, with its quotes; its lines end as lines of Python do."""
    text = re.sub("\r\n?", "\n", text)
    for sign in ("\\", '"'):
        text = text.replace(sign, f"\\{sign}")
    return f'"""{terminal_text(text)}"""'


def json_text(value: Any, indent: int | None = None) -> str:
    """A value of dicts, lists, text and numbers as JSON, all of it printable ASCII and newlines."""
    import json  # slow to import

    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def json_value(text: str | bytes) -> Any:
    """The value of a text in JSON.

    Raises:
        ValueError: it is no JSON, or nests deeper than Python's stack.
    """
    import json  # slow to import

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its lists and objects nest too deep") from None


def html_text(text: str, keep: str = "") -> str:
    """Text as it is, in HTML and SVG: between tags, and as the value of an attribute in quotes.

    Args:
        text: any text.
        keep: the characters that stay beside the printable ones, such as the ends of lines.
    """
    text = terminal_text(text, keep).replace("&", "&amp;")
    for sign in "<>\"'":
        text = text.replace(sign, f"&#{ord(sign)};")
    return text


def markdown_cell(text: str) -> str:
    """Text as it is, in Markdown: also in a cell of a table."""
    text = terminal_text(text).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for sign in "|*_`[]":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")


def markdown_code(text: str) -> str:
    """Text as code in Markdown: also in a cell of a table."""
    if re.fullmatch(r"[\w./:>@~^-]+", text, re.ASCII):
        return f"`{text}`"
    signs = (c if c.isalnum() else f"&#{ord(c)};" for c in terminal_text(text, keep=""))
    return f"<code>{''.join(signs)}</code>"


def sarif_message(text: str) -> str:
    r"""Text for a message in SARIF, which would take `[words](place)` for a link."""
    return re.sub(r"\[(?=[^\]]*\]\()", r"\\[", text)


def archive_name(name: str) -> str:
    """The name of an array in an .npz file: the name itself, or a substitute where it is too long."""
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= _LONGEST_MEMBER:
        return name
    import hashlib  # seldom needed

    return f"{name[:100]}...{hashlib.sha256(data).hexdigest()}"
