r"""Text protos whose long strings stand on lines of their own, as ApiDef files are written.

    description: <<END
    Computes the "sum"
    of all.
    END

is `description: "Computes the \"sum\"\nof all."`. The word after `<<` is free. The value ends at the
first line that begins with the word; the rest of that line stays behind the value.

Source: TensorFlow core/framework/op_gen_lib.cc.
"""

import itertools
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TypeVar

from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.opdef.text.escaping import c_escape, c_unescape
from opkernel.proto import Message

AnyMessage = TypeVar("AnyMessage", bound=Message)

_QUOTED = re.compile(r'(?P<head> *(?P<field>[^:]*)): *"(?P<escaped>.*)"(?P<rest>[^"]*)', re.DOTALL)
_MULTILINE = re.compile(r"(?P<head>[^:]*:) *<<(?P<end>[^\n]*)\n")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def pb_txt_to_multiline(pbtxt: str, multi_line_fields: Collection[str]) -> str:
    """Write the strings of some fields on lines of their own (PBTxtToMultiline).

    Args:
        pbtxt: a text proto with each field on its line. Lines that cannot be read as one of the
            fields with a quoted string stay as they are.
        multi_line_fields: the names of the fields.
    """
    lines = pbtxt.removesuffix("\n").split("\n") if pbtxt else []
    return "".join([f"{_to_multiline(line, multi_line_fields)}\n" for line in lines])


def _to_multiline(line: str, fields: Collection[str]) -> str:
    found = _QUOTED.fullmatch(line)
    if found is None or found["field"] not in fields:
        return line
    try:
        text = c_unescape(found["escaped"]).decode("utf-8", "surrogateescape")
    except ValueError:
        return line
    end = next(end for end in _end_markers() if end not in text)
    return f"{found['head']}: <<{end}\n{text}\n{end}{found['rest']}"


def _end_markers() -> Iterator[str]:
    yield "END"
    yield from (f"END{number}" for number in itertools.count())


def pb_txt_from_multiline(multiline_pbtxt: str) -> str:
    """Turn strings on lines of their own into quoted ones (PBTxtFromMultiline)."""
    lines = iter(_LINE.findall(multiline_pbtxt))
    return "".join([_from_multiline(line, lines) for line in lines])


def _from_multiline(line: str, following: Iterator[str]) -> str:
    """The line, with the string that begins at its end; takes that from the following lines."""
    found = _MULTILINE.fullmatch(line)
    if found is None:
        return line
    value, suffix = [], ""
    for text in following:
        text = text.removesuffix("\n")
        if text.startswith(found["end"]):
            suffix = text.removeprefix(found["end"])
            break
        value.append(text)
    escaped = c_escape("\n".join(value).encode("utf-8", "surrogateescape"))
    return f'{found["head"]} "{escaped}"{suffix}\n'


def read_multiline(filename: str | os.PathLike[str]) -> str:
    """The text of a file; bytes that are no UTF-8 become surrogates.

    Raises:
        NotFoundError: there is no such file.
        FailedPreconditionError: the file cannot be read.
    """
    with file_errors(filename):
        return Path(filename).read_text(encoding="utf-8", errors="surrogateescape")


def parse_multiline(text: str, message: AnyMessage) -> AnyMessage:
    """Fill a message from (multi-line) text format.

    Raises:
        InvalidArgumentError: the text is no text of the message; the error tells the line and column.
    """
    from google.protobuf import text_format  # slow to import

    try:
        return text_format.Parse(pb_txt_from_multiline(text), message)
    except (text_format.ParseError, UnicodeError, RecursionError) as error:
        raise InvalidArgumentError(f"not a text of {message.DESCRIPTOR.name}: {error}") from None
