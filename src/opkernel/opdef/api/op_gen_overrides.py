"""OpGenOverrides: how TensorFlow up to 1.3 had ops shown under other names and defaults.

ApiDefs (`api_def`) took their place; files of this kind are still about.

Source: TensorFlow 1.3, core/framework/op_gen_lib.cc, op_gen_overrides.proto.
"""

import logging
from collections.abc import Iterable
from typing import Any

from opkernel.opdef.api.api_def import rename_in_docs
from opkernel.opdef.text.multiline_proto import parse_multiline, read_multiline
from opkernel.proto import OpDef, OpGenOverride, OpGenOverrides

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
        if override.rename_to:
            op_def.name = override.rename_to
            _rename_in_docs(override.name, override.rename_to, op_def)
        for default in override.attr_default:
            for attr in _named(op_def.attr, default.name, override, "attr"):
                attr.default_value.CopyFrom(default.value)
        for rename in override.attr_rename:
            _rename(op_def, op_def.attr, rename, override, "attr")
        for rename in override.input_rename:
            _rename(op_def, op_def.input_arg, rename, override, "input")
        for rename in override.output_rename:
            _rename(op_def, op_def.output_arg, rename, override, "output")
        return override


def _named(parts: Iterable[Any], name: str, override: OpGenOverride, kind: str) -> list[Any]:
    """The first part of a name, in a list; an empty list, and a warning, for a name without parts."""
    found = [part for part in parts if part.name == name][:1]
    if not found:
        _logger.warning("%s can't find %s %s to override", override.name, kind, name)
    return found


def _rename(
    op_def: OpDef,
    parts: Iterable[Any],
    rename: OpGenOverride.Rename,
    override: OpGenOverride,
    kind: str,
) -> None:
    old: str = getattr(rename, "from")
    for part in _named(parts, old, override, kind):
        part.name = rename.to
        if kind == "attr":
            _rename_references(op_def, old, rename.to)
        _rename_in_docs(old, rename.to, op_def)


def _rename_references(op_def: OpDef, old: str, new: str) -> None:
    """Follow the new name of an attr in the types and lengths of arguments."""
    for arg in (*op_def.input_arg, *op_def.output_arg):
        for field in ("type_attr", "number_attr", "type_list_attr"):
            if getattr(arg, field) == old:
                setattr(arg, field, new)


def _rename_in_docs(old: str, new: str, op_def: OpDef) -> None:
    rename_in_docs(old, new, (op_def, *op_def.input_arg, *op_def.output_arg, *op_def.attr))
