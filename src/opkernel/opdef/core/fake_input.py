"""`fake_input`: made-up inputs for `NodeDefBuilder`, for tests of nodes on their own.

    NodeDefBuilder("n", "Pack").input(fake_input(2, float32)).finalize()

Source: TensorFlow core/framework/fake_input.cc.
"""

from collections.abc import Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef.core.declarations import find_attr
from opkernel.opdef.core.node_def import get_node_attr
from opkernel.proto import NodeDef, OpDef
from opkernel.records import dataclass
from opkernel.types import DataType


@dataclass(frozen=True)
class FakeInput:
    """The arguments of `fake_input`; all else about the tensors comes from the attrs of the node."""

    dtype: DataType | None
    count: int | None
    dtypes: tuple[DataType, ...] | None

    def types_for(
        self, arg: OpDef.ArgDef, node: NodeDef, op_def: OpDef
    ) -> DataType | list[DataType]:
        """The type of the one tensor for an argument, or the types of its list of tensors.

        Raises:
            InvalidArgumentError: neither this, nor the node, nor a default tells them.
        """
        known = _Known(node, op_def)
        if self.dtypes is not None:
            return list(self.dtypes)
        if arg.type_list_attr and self.dtype is None and self.count is None:
            what = f"list of types for input '{arg.name}'"
            found: list[DataType] = known.attr(what, arg.type_list_attr, "list(type)")
            return found
        count = self.count
        if count is None and arg.number_attr:
            count = known.attr(f"length of input '{arg.name}'", arg.number_attr, "int")
        if count is None:
            return self.dtype or known.dtype(arg)
        return [self.dtype or known.dtype(arg)] * count if count > 0 else []


class _Known:
    """The facts about a node's inputs that its set attrs, and the defaults of its op, tell."""

    def __init__(self, node: NodeDef, op_def: OpDef) -> None:
        self._node = node
        self._op_def = op_def

    def dtype(self, arg: OpDef.ArgDef) -> DataType:
        if arg.type:
            dtype = DataType(arg.type)
        elif arg.type_attr:
            dtype = self.attr(f"type for input '{arg.name}'", arg.type_attr, "type")
        else:
            raise InvalidArgumentError(f"No type or type_attr field in arg '{arg.name}'")
        return dtype.ref if arg.is_ref else dtype

    def attr(self, what: str, name: str, attr_type: str) -> Any:
        try:
            return get_node_attr(self._node, name, attr_type)
        except OpError as error:
            attr = find_attr(self._op_def, name)
            if attr_type == "type" and attr is not None and attr.HasField("default_value"):
                return DataType(attr.default_value.type)
            raise InvalidArgumentError(f"Could not infer {what}: {error.message}") from None


def fake_input(
    what: int | DataType | Sequence[DataType] | None = None, dtype: DataType | None = None
) -> FakeInput:
    """Made-up tensors for an argument of a node: `builder.input(fake_input(...))`.

    Facts left out come from the attrs that the node has by then, or from the default of a type attr.

    Args:
        what: the type of each tensor; or the number of tensors of an `N * T` argument; or the types
            of a type list's tensors.
        dtype: the type of each of a number of tensors.
    """
    if what is None or isinstance(what, DataType):
        return FakeInput(what or dtype, None, None)
    if isinstance(what, int):
        return FakeInput(dtype, what, None)
    return FakeInput(None, None, tuple(what))
