"""How ops are shown to users: an ApiDef for each op, from its OpDef and files that override it.

TensorFlow up to 1.3 had files of `OpGenOverrides` in place of ApiDefs; they are still about.

Source: TensorFlow core/framework/op_gen_lib.cc, api_def.proto; op_gen_overrides.proto of TensorFlow 1.3.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

from opkernel.errors import FailedPreconditionError
from opkernel.opdef.text.text_proto import parse_multiline, read_multiline
from opkernel.proto import ApiDef, ApiDefs, OpDef, OpGenOverride, OpGenOverrides, OpList


def api_def_from_op_def(op_def: OpDef) -> ApiDef:
    """The ApiDef that changes nothing: visible, under the op's name, in the order of the OpDef."""
    api_def = ApiDef(
        graph_op_name=op_def.name,
        visibility=ApiDef.VISIBLE,
        endpoint=[ApiDef.Endpoint(name=op_def.name)],
        in_arg=[_api_arg(arg) for arg in op_def.input_arg],
        out_arg=[_api_arg(arg) for arg in op_def.output_arg],
        arg_order=[arg.name for arg in op_def.input_arg],
        summary=op_def.summary,
        description=op_def.description,
    )
    for attr in op_def.attr:
        shown = api_def.attr.add(name=attr.name, rename_to=attr.name, description=attr.description)
        if attr.HasField("default_value"):
            shown.default_value.CopyFrom(attr.default_value)
    return api_def


def _api_arg(arg: OpDef.ArgDef) -> ApiDef.Arg:
    return ApiDef.Arg(name=arg.name, rename_to=arg.name, description=arg.description)


class ApiDefMap:
    """The ApiDefs of a list of ops, by name."""

    def __init__(self, op_list: OpList) -> None:
        self._map = {op.name: api_def_from_op_def(op) for op in op_list.op}

    def get_api_def(self, name: str) -> ApiDef | None:
        """The ApiDef of an op, None for an op that is not in the list."""
        return self._map.get(name)

    def load_file_list(self, filenames: Iterable[str | os.PathLike[str]]) -> None:
        """Load files, one after the other; raises as `load_file` does."""
        for filename in filenames:
            self.load_file(filename)

    def load_file(self, filename: str | os.PathLike[str]) -> None:
        """Load a file; an empty name stands for none.

        Raises:
            OpError: as `read_multiline` and `load_api_def`.
        """
        if filename:
            self.load_api_def(read_multiline(filename))

    def load_api_def(self, api_def_file_contents: str) -> None:
        """Override ApiDefs by the contents of a file, an ApiDefs in (multi-line) text format.

        Fields that an override leaves out stay. A list of endpoints, and an order of the arguments,
        replace the earlier ones; arguments and attrs are found by name. Entries for ops that are
        not in the list have no effect. Entries before an error are applied.

        Raises:
            InvalidArgumentError: the contents are not the text of an ApiDefs.
            FailedPreconditionError: an override names an argument or attr that the op lacks, or
                its order of the arguments is none of them.
        """
        for override in parse_multiline(api_def_file_contents, ApiDefs()).op:
            base = self._map.get(override.graph_op_name)
            if base is not None:
                _merge(base, override)

    def update_docs(self) -> None:
        """Put the new names into the texts, wherever they quote an old one with back quotes."""
        for api_def in self._map.values():
            parts: list[Any] = [*api_def.in_arg, *api_def.out_arg, *api_def.attr]
            rename_in_docs(api_def.graph_op_name, api_def.endpoint[0].name, [api_def, *parts])
            for part in parts:
                rename_in_docs(part.name, part.rename_to, [api_def, *parts])


def _merge(base: ApiDef, override: ApiDef) -> None:
    op = base.graph_op_name
    if override.visibility != ApiDef.DEFAULT_VISIBILITY:
        base.visibility = override.visibility
    if override.endpoint:
        _replace(base.endpoint, override.endpoint)
    _merge_parts("Argument", op, base.in_arg, override.in_arg)
    _merge_parts("Argument", op, base.out_arg, override.out_arg)
    if override.arg_order:
        _check_arg_order(base, override)
        _replace(base.arg_order, override.arg_order)
    _merge_parts("Attribute", op, base.attr, override.attr)
    base.summary = override.summary or base.summary
    base.description = override.description or base.description
    if override.description_prefix:
        base.description = f"{override.description_prefix}\n{base.description}"
    if override.description_suffix:
        base.description = f"{base.description}\n{override.description_suffix}"


def _replace(field: Any, values: Iterable[Any]) -> None:
    del field[:]
    field.extend(values)


def _merge_parts(kind: str, op: str, base: Iterable[Any], overrides: Iterable[Any]) -> None:
    """Merge arguments or attrs into the ones of the same names."""
    by_name = {part.name: part for part in reversed(list(base))}
    for override in overrides:
        part = by_name.get(override.name)
        if part is None:
            raise FailedPreconditionError(
                f"{kind} {override.name} not defined in base api for {op}"
            )
        part.rename_to = override.rename_to or part.rename_to
        part.description = override.description or part.description
        if kind == "Attribute" and override.HasField("default_value"):
            part.default_value.CopyFrom(override.default_value)


def _check_arg_order(base: ApiDef, override: ApiDef) -> None:
    """Raise FailedPreconditionError unless an order holds each argument once."""
    op, wanted, given = base.graph_op_name, base.arg_order, override.arg_order
    if len(given) != len(wanted):
        raise FailedPreconditionError(
            f"Invalid number of arguments {len(given)} for {op}. Expected: {len(wanted)}"
        )
    if sorted(given) != sorted(wanted):
        raise FailedPreconditionError(
            f"Invalid arg_order: {', '.join(given)} for {op}. It must be an order of the base "
            f"api's arguments: {', '.join(wanted)}"
        )


def rename_in_docs(old: str, new: str, parts: Iterable[Any]) -> None:
    """Replace a name in back quotes in the `summary` and `description` of messages."""
    for part in parts:
        part.description = part.description.replace(f"`{old}`", f"`{new}`")
        if isinstance(part, ApiDef | OpDef):
            part.summary = part.summary.replace(f"`{old}`", f"`{new}`")


_logger = logging.getLogger(__name__)


class OpGenOverrideMap:
    """Overrides by the names of the ops that they change."""

    def __init__(self) -> None:
        self._map: dict[str, OpGenOverride] = {}

    def load_file_list(self, filenames: str) -> None:
        """Load files whose names are separated by commas; raises as `load_file` does."""
        for filename in filenames.split(","):
            self.load_file(filename)

    def load_file(self, filename: str) -> None:
        """Load a file; an empty name stands for none.

        Raises:
            OpError: as `read_multiline` and `load_overrides`.
        """
        if filename:
            self.load_overrides(read_multiline(filename))

    def load_overrides(self, file_contents: str) -> None:
        """Take overrides from an OpGenOverrides in (multi-line) text format.

        Of several for one op the last counts.

        Raises:
            InvalidArgumentError: the contents are not such a text.
        """
        for override in parse_multiline(file_contents, OpGenOverrides()).op:
            self._map[override.name] = override

    def apply_override(self, op_def: OpDef) -> OpGenOverride | None:
        """Change an OpDef as the override for it says.

        Renames the op, its attrs with all references to them, its inputs and outputs, and these
        names in the texts where they stand in back quotes; sets defaults of attrs. An override of
        something that the OpDef lacks is logged and left.

        Returns:
            The override; the caller follows its `skip`, `hide` and `alias`. None where the op has no
            override.
        """
        override = self._map.get(op_def.name)
        if override is None:
            return None
        texts = (op_def, *op_def.input_arg, *op_def.output_arg, *op_def.attr)
        if override.rename_to:
            op_def.name = override.rename_to
            rename_in_docs(override.name, override.rename_to, texts)
        for default in override.attr_default:
            attr = _named(op_def.attr, default.name, override, "attr")
            if attr is not None:
                attr.default_value.CopyFrom(default.value)
        for kind, parts, renames in (
            ("attr", op_def.attr, override.attr_rename),
            ("input", op_def.input_arg, override.input_rename),
            ("output", op_def.output_arg, override.output_rename),
        ):
            for rename in renames:
                old: str = getattr(rename, "from")
                part = _named(parts, old, override, kind)
                if part is not None:
                    part.name = rename.to
                    if kind == "attr":
                        _rename_references(op_def, old, rename.to)
                    rename_in_docs(old, rename.to, texts)
        return override


def _named(parts: Iterable[Any], name: str, override: OpGenOverride, kind: str) -> Any:
    """The first part of a name; None, and a warning, where there is none."""
    found = next((part for part in parts if part.name == name), None)
    if found is None:
        _logger.warning("%s can't find %s %s to override", override.name, kind, name)
    return found


def _rename_references(op_def: OpDef, old: str, new: str) -> None:
    """Follow the new name of an attr in the types and lengths of arguments."""
    for arg in (*op_def.input_arg, *op_def.output_arg):
        for field in ("type_attr", "number_attr", "type_list_attr"):
            if getattr(arg, field) == old:
                setattr(arg, field, new)


def word_wrap(prefix: str, text: str, width: int) -> str:
    """The text behind a prefix, broken at blanks into lines of at most `width` (WordWrap).

    Lines after the first are indented as far as the prefix reaches. A word that is longer than a
    line gets one of its own. Line ends that are in the text count as characters of words.
    """
    room = width - len(prefix)
    lines = []
    while len(text) > room:
        blank = text.rfind(" ", 0, room + 1) if room >= 0 else text.rfind(" ")
        blank = text.find(" ") if blank < 0 else blank
        if blank < 0:
            break
        lines.append(text[:blank].rstrip(" "))
        text = text[blank:].lstrip(" ")
    if text or not lines:
        lines.append(text)
    return prefix + f"\n{' ' * len(prefix)}".join(lines)
