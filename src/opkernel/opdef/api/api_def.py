"""How ops are shown to users: an ApiDef for each op, from its OpDef and files that override it.

Source: TensorFlow core/framework/op_gen_lib.cc, api_def.proto.
"""

import os
from collections.abc import Iterable
from typing import Any

from opkernel.errors import FailedPreconditionError
from opkernel.opdef.text.multiline_proto import parse_multiline, read_multiline
from opkernel.proto import ApiDef, ApiDefs, OpDef, OpList


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
            _rename_all_in_docs(api_def)


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


def _rename_all_in_docs(api_def: ApiDef) -> None:
    parts: list[Any] = [*api_def.in_arg, *api_def.out_arg, *api_def.attr]
    rename_in_docs(api_def.graph_op_name, api_def.endpoint[0].name, [api_def, *parts])
    for part in parts:
        rename_in_docs(part.name, part.rename_to, [api_def, *parts])


def rename_in_docs(old: str, new: str, parts: Iterable[Any]) -> None:
    """Replace a name in back quotes in the `summary` and `description` of messages."""
    for part in parts:
        part.description = part.description.replace(f"`{old}`", f"`{new}`")
        if isinstance(part, ApiDef | OpDef):
            part.summary = part.summary.replace(f"`{old}`", f"`{new}`")
