"""One definition of an op in a file of ops: kept as the text it is, and parsed when looked at.

Most readers of a history of thousands of definitions look at few of them.
"""

import re

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.text.text_proto import TextProtoError, merge_text
from opkernel.proto import OpDef, OpList

_OP = re.compile(r"(\n*)op \{\n((?:  .*\n)*)\}\n")
_NAME = re.compile(r'  name: "([^"\\]*)"\n')


class OpRevision:
    """A definition of an op, at one time.

    Attributes:
        name: The op's name.
        line: Where the definition begins in its text file; 0 for others.
    """

    __slots__ = ("_op_def", "_source", "_text", "line", "name")

    def __init__(self, op_def: OpDef) -> None:
        self.name = op_def.name
        self.line = 0
        self._op_def: OpDef | None = op_def
        self._text = ""
        self._source = ""

    @classmethod
    def from_text(cls, name: str, text: str, source: str, line: int) -> "OpRevision":
        """A definition whose fields `text` spells, in line `line` of the file `source`."""
        revision = cls(OpDef(name=name))
        revision._op_def = None
        revision._text = text
        revision._source = source
        revision.line = line
        return revision

    @property
    def op_def(self) -> OpDef:
        """The definition, for reading only.

        Raises:
            InvalidArgumentError: the file's text spells none.
        """
        if self._op_def is None:
            self._op_def = _parse(self._text, f"{self._source}, op {self.name!r}", self.line)
        return self._op_def

    def to_text(self) -> str:
        """The definition as it stands in the text of an OpList."""
        if self._text:
            return f"op {{\n{self._text}}}\n"
        from google.protobuf import text_format  # slow to import, and seldom needed

        return text_format.MessageToString(OpList(op=[self.op_def]))


def split_op_list_text(text: str, source: str) -> list[OpRevision]:
    """The definitions in the text form of an OpList, in the order of the file.

    Text in the layout of TensorFlow and protobuf is split at its lines and parsed later; any other layout is
    parsed at once, which takes longer.

    Args:
        text: the text.
        source: the name of the file, for messages.

    Raises:
        InvalidArgumentError: the text is no OpList.
    """
    revisions = []
    at, line = 0, 1
    while at < len(text):
        found = _OP.match(text, at)
        name = _NAME.match(found[2]) if found else None
        if found is None or name is None:
            return [OpRevision(op) for op in _parse_all(text, source).op]
        line += len(found[1])
        revisions.append(OpRevision.from_text(name[1], found[2], source, line))
        line += found[2].count("\n") + 2
        at = found.end()
    return revisions


def _parse(text: str, source: str, first_line: int) -> OpDef:
    """The OpDef that the lines after `first_line` spell."""
    op_def = OpDef()
    try:
        merge_text(text, op_def, ignore_unknown=False)
    except TextProtoError:  # or just more than that reader takes
        op_def = OpDef()
        _parse_with_protobuf(text, op_def, source, first_line)
    return op_def


def _parse_all(text: str, source: str) -> OpList:
    ops = OpList()
    _parse_with_protobuf(text, ops, source, 0)
    return ops


def _parse_with_protobuf(text: str, message: OpDef | OpList, source: str, first_line: int) -> None:
    from google.protobuf import text_format  # slow to import, and seldom needed

    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        line = error.GetLine()
        place = "" if line is None else f", line {first_line + line}"
        raise InvalidArgumentError(
            f"{source}{place}: not an OpList in text format: {error}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InvalidArgumentError(f"{source}: not an OpList in text format: {error}") from error
