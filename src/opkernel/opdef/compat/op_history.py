"""Op histories: the successive definitions of each op, which every later one is held against; and their files.

A history is an OpList in which the definitions of an op follow one another, oldest first, and ops
are ordered by name. TensorFlow keeps one for each of its major versions. Files of histories, and of any other OpList,
are text or binary, packed with gzip or xz or not. Most readers of a history of thousands of definitions look at few of
them, so that a definition is kept as the text it is, and parsed when it is looked at.

Source: TensorFlow core/ops/compat/op_compatibility_lib.cc, core/framework/op_def_util.cc.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.file_errors import checked_path, file_errors
from opkernel.opdef.compat.op_compatibility import (
    CompatibilityRule,
    OpChange,
    changed_added_defaults,
    changed_attr_defaults,
    changes_for_callers,
    incompatible_changes,
)
from opkernel.opdef.core.validate import validate_op_def
from opkernel.opdef.text.summary import summarize_op_def
from opkernel.opdef.text.text_proto import AnyMessage, TextProtoError, merge_text
from opkernel.proto import DecodeError, OpDef, OpList

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
    def from_text(cls, name: str, text: str, source: str, line: int) -> OpRevision:
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
            op_def = OpDef()
            try:
                merge_text(self._text, op_def, ignore_unknown=False)
            except TextProtoError:  # or just more than that reader takes
                source = f"{self._source}, op {self.name!r}"
                op_def = _parsed(self._text, OpDef(), source, self.line)
            self._op_def = op_def
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
            return [OpRevision(op) for op in _parsed(text, OpList(), source, 0).op]
        line += len(found[1])
        revisions.append(OpRevision.from_text(name[1], found[2], source, line))
        line += found[2].count("\n") + 2
        at = found.end()
    return revisions


def _parsed(text: str, message: AnyMessage, source: str, first_line: int) -> AnyMessage:
    """The message that the lines after `first_line` spell, read by protobuf into an empty one."""
    from google.protobuf import text_format  # slow to import, and seldom needed

    try:
        return text_format.Parse(text, message)
    except text_format.ParseError as error:
        line = error.GetLine()
        place = "" if line is None else f", line {first_line + line}"
        raise InvalidArgumentError(
            f"{source}{place}: not an OpList in text format: {error}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InvalidArgumentError(f"{source}: not an OpList in text format: {error}") from error


_Rule = CompatibilityRule


class OpHistory(Mapping[str, Sequence[OpRevision]]):
    """The definitions of each op, oldest first; ops are ordered by name."""

    def __init__(self, revisions: Iterable[OpRevision] = ()) -> None:
        self._revisions: dict[str, list[OpRevision]] = {}
        for revision in revisions:
            self._revisions.setdefault(revision.name, []).append(revision)

    @classmethod
    def of(cls, op_defs: Iterable[OpDef]) -> OpHistory:
        """A history of definitions in their order."""
        return cls(OpRevision(op_def) for op_def in op_defs)

    def __getitem__(self, op: str) -> Sequence[OpRevision]:
        return self._revisions[op]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._revisions))

    def __len__(self) -> int:
        return len(self._revisions)

    def revisions(self) -> Iterator[OpRevision]:
        """All definitions, in the order of a history file."""
        for op in self:
            yield from self._revisions[op]

    def newest(self) -> list[OpDef]:
        """The last definition of each op."""
        return [self._revisions[op][-1].op_def for op in self]

    def add(self, op_defs: Iterable[OpDef]) -> OpSetComparison:
        """Append the definitions that are new or differ from the last one of their op.

        Documentation is left out. Ops of the history that are not among `op_defs` stay.

        Returns:
            The ops that were added and changed.

        Raises:
            InvalidArgumentError: one breaks graphs made for an earlier definition; nothing is
                added then.
        """
        by_name = {op_def.name: _undocumented(op_def) for op_def in op_defs}
        comparison = compare_with_history(self, by_name.values(), stable_ops=by_name)
        for change in comparison.changes:
            if change.rule.breaks_graphs:
                raise InvalidArgumentError(f"Incompatible Op change: {change.op}: {change.fact}")
        for name in (*comparison.added, *comparison.changed):
            self._revisions.setdefault(name, []).append(OpRevision(by_name[name]))
        return comparison


@dataclass
class OpSetComparison:
    """How a set of ops differs from a history.

    Attributes:
        added, changed: The names of the ops that are new, or differ from their last definition.
        changes: The changes that break graphs or callers.
    """

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    changes: list[OpChange] = field(default_factory=list)


def compare_with_history(
    history: OpHistory, op_defs: Iterable[OpDef], *, stable_ops: Collection[str] | None = None
) -> OpSetComparison:
    """Compare ops with all their earlier definitions, as TensorFlow does before a release.

    An op that equals its last definition passes, even if earlier definitions differ. Defaults are
    compared with the last definition only, also for attrs that the first one lacked. Ops whose names
    begin with `_` are internal, and are not compared.

    Args:
        history: the definitions up to now.
        op_defs: the ops now, in any order; documentation does not count.
        stable_ops: the names of the ops that are looked at; all of them if None.

    Raises:
        InvalidArgumentError: an op that is new or changed is no valid declaration.
    """
    now = {op.name: op for op in op_defs}
    names = [n for n in sorted(now.keys() | history.keys()) if not n.startswith("_")]
    comparison = OpSetComparison()
    for name in names if stable_ops is None else [n for n in names if n in stable_ops]:
        op_def = now.get(name)
        if name not in history:
            validate_op_def(now[name])
            comparison.added.append(name)
            continue
        last = history[name][-1].op_def
        if op_def is None:
            fact = f"Op removed: {summarize_op_def(last)}"
            comparison.changes.append(OpChange(_Rule.OP_REMOVED, fact, last, None))
        elif _undocumented_bytes(last) != _undocumented_bytes(op_def):
            validate_op_def(op_def)
            comparison.changed.append(name)
            earlier = [revision.op_def for revision in history[name]]
            comparison.changes += _changes_since(earlier, op_def)
    return comparison


def refused_steps(history: OpHistory) -> Iterator[tuple[OpRevision, OpChange]]:
    """The definitions of a history that its own earlier ones rule out.

    TensorFlow's own history holds some: integer types that ops such as Acos and Softplus no longer
    take. Its check does not meet them: it passes an op that equals its last definition.
    """
    for op in history:
        earlier: list[OpDef] = []
        for revision in history[op]:
            for change in _changes_since(earlier, revision.op_def) if earlier else ():
                if change.rule.breaks_graphs:
                    yield revision, change
            earlier.append(revision.op_def)


def _changes_since(earlier: Sequence[OpDef], op_def: OpDef) -> list[OpChange]:
    """The changes that break graphs or callers of earlier definitions; each once, at its latest."""
    first, last = earlier[0], earlier[-1]
    found: dict[tuple[_Rule, str], OpChange] = {}
    for change in chain(
        *(incompatible_changes(old, op_def) for old in reversed(earlier)),
        changed_attr_defaults(last, op_def),
        changed_added_defaults(first, last, op_def) if len(earlier) > 1 else (),
        changes_for_callers(last, op_def),
    ):
        found.setdefault((change.rule, change.part), change)
    return list(found.values())


def _undocumented_bytes(op_def: OpDef) -> bytes:
    return _undocumented(op_def).SerializeToString(deterministic=True)


def _undocumented(op_def: OpDef) -> OpDef:
    copy = OpDef()
    copy.CopyFrom(op_def)
    remove_descriptions_from_op_def(copy)
    return copy


def remove_non_deprecation_descriptions_from_op_def(op_def: OpDef) -> None:
    """Clear, in place, every text for people but the explanation of a deprecation."""
    for parts in (op_def.input_arg, op_def.output_arg, op_def.attr):
        for part in parts:
            part.ClearField("description")
    op_def.ClearField("summary")
    op_def.ClearField("description")


def remove_descriptions_from_op_def(op_def: OpDef) -> None:
    """Clear, in place, every text for people. A deprecation stays, without its explanation."""
    remove_non_deprecation_descriptions_from_op_def(op_def)
    if op_def.HasField("deprecation"):
        op_def.deprecation.ClearField("explanation")


def remove_descriptions_from_op_list(op_list: OpList) -> None:
    """Clear, in place, every text for people in all ops of a list."""
    for op_def in op_list.op:
        remove_descriptions_from_op_def(op_def)


_MAX_BYTES = 1 << 30  # unpacked; TensorFlow's own history has 2.5 MB

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_PACKED = (".gz", ".xz")
_TEXT = re.compile(rb"(?:\s+|#[^\n]*)*(?:op\s*:?\s*[{<\[]|\Z)")


def read_op_history(path: str | os.PathLike[str]) -> OpHistory:
    """The ops in a file that holds an OpList: a history, or one definition of each op.

    The content tells whether it is packed, and whether text or binary. Definitions in text format
    are parsed when they are looked at.

    Raises:
        NotFoundError: there is no such file.
        PermissionDeniedError: it may not be read.
        InvalidArgumentError: it holds something else.
        ResourceExhaustedError: it is larger than 1 GiB, unpacked.
    """
    with file_errors(path), open(checked_path(path), "rb") as file:
        data = file.read(_MAX_BYTES + 1)
    return parse_op_history(data, str(path))


def parse_op_history(data: bytes, source: str) -> OpHistory:
    """The ops in the content of a file named `source`; see `read_op_history`."""
    data = _unpacked(data, source)
    if len(data) > _MAX_BYTES:
        raise ResourceExhaustedError(f"{source} is larger than {_MAX_BYTES} bytes")
    if _TEXT.match(data):
        try:
            text = data.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidArgumentError(f"{source}, line {line} is not UTF-8") from error
        return OpHistory(split_op_list_text(text, source))
    try:
        ops = OpList.FromString(data).op
    except DecodeError:
        ops = OpList().op
    if not ops or not all(op.name for op in ops):
        raise InvalidArgumentError(f"{source} is no OpList, neither in text nor in binary format")
    return OpHistory(map(OpRevision, ops))


def write_op_history(history: OpHistory, path: str | os.PathLike[str]) -> None:
    """Write a history: binary where the name ends in .pb, as text otherwise; .gz and .xz pack it.

    Definitions that were read from text are written as they were.

    Raises:
        NotFoundError: there is no directory of that name.
        PermissionDeniedError: the file may not be written.
    """
    path = Path(checked_path(path))
    name = path.stem if path.suffix in _PACKED else path.name
    if name.endswith(".pb"):
        ops = OpList(op=[revision.op_def for revision in history.revisions()])
        data = ops.SerializeToString(deterministic=True)
    else:
        data = "".join(revision.to_text() for revision in history.revisions()).encode()
    with file_errors(path):
        path.write_bytes(_packed(data, path.suffix))


def _packed(data: bytes, suffix: str) -> bytes:
    import gzip  # slow to import, and seldom needed, as the next one
    import lzma

    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    return lzma.compress(data) if suffix == ".xz" else data


def _unpacked(data: bytes, source: str) -> bytes:
    import gzip  # slow to import, and seldom needed, as the others
    import lzma
    import zlib

    try:
        if data.startswith(_GZIP):
            return gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MAX_BYTES + 1)
        if data.startswith(_XZ):
            return lzma.LZMAFile(io.BytesIO(data)).read(_MAX_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InvalidArgumentError(f"{source} cannot be unpacked: {error}") from error
    return data
