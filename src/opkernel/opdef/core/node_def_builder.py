"""`NodeDefBuilder`: the chain that writes a node, inferring attrs from its inputs; and inputs made up for tests.

Source: TensorFlow core/framework/node_def_builder.cc, fake_input.cc.
"""

from collections.abc import Sequence
from typing import Any, Self, overload

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef.core.attr_value import attr_from_python, infer_attr_from_python
from opkernel.opdef.core.declarations import find_attr, is_list_arg
from opkernel.opdef.core.node_def import add_defaults_to_node_def, get_node_attr
from opkernel.opdef.core.op_lookup import OpRegistryInterface
from opkernel.opdef.core.op_registry import global_op_registry
from opkernel.opdef.core.validate import are_attr_values_equal
from opkernel.opdef.text.summary import summarize_attr_value, summarize_op_def
from opkernel.proto import AttrValue, NodeDef, OpDef
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
        if self.dtypes is not None:
            return list(self.dtypes)
        if arg.type_list_attr and self.dtype is None and self.count is None:
            what = f"list of types for input '{arg.name}'"
            found: list[DataType] = _known_attr(
                what, arg.type_list_attr, "list(type)", node, op_def
            )
            return found
        count = self.count
        if count is None and arg.number_attr:
            what = f"length of input '{arg.name}'"
            count = _known_attr(what, arg.number_attr, "int", node, op_def)
        if count is not None and count <= 0:
            return []
        dtype = self.dtype or _known_dtype(arg, node, op_def)
        return dtype if count is None else [dtype] * count


def _known_dtype(arg: OpDef.ArgDef, node: NodeDef, op_def: OpDef) -> DataType:
    """The type of an argument that a node's set attrs, and the defaults of its op, tell."""
    if arg.type:
        dtype = DataType(arg.type)
    elif arg.type_attr:
        what = f"type for input '{arg.name}'"
        dtype = _known_attr(what, arg.type_attr, "type", node, op_def)
    else:
        raise InvalidArgumentError(f"No type or type_attr field in arg '{arg.name}'")
    return dtype.ref if arg.is_ref else dtype


def _known_attr(what: str, name: str, attr_type: str, node: NodeDef, op_def: OpDef) -> Any:
    try:
        return get_node_attr(node, name, attr_type)
    except OpError as error:
        attr = find_attr(op_def, name)
        if attr_type == "type" and attr is not None and attr.HasField("default_value"):
            return DataType(attr.default_value.type)
        raise InvalidArgumentError(f"Could not infer {what}: {error.message}") from None


def fake_input(
    what: int | DataType | Sequence[DataType] | None = None, dtype: DataType | None = None
) -> FakeInput:
    """Made-up tensors for an argument of a node, for tests of nodes on their own.

        NodeDefBuilder("n", "Pack").input(fake_input(2, float32)).finalize()

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


class NodeDefBuilder:
    """Collects the parts of a node; every method but `finalize` returns the builder.

        NodeDefBuilder("sum", "AddN").input_list([("a", 0, float32), ("b", 1, float32)]).finalize()

    Inputs are given in the order of the op's arguments. Their types and numbers set the attrs that
    the arguments name. Nothing raises before `finalize`, which lists everything that is wrong.

    Args:
        name: The node's name.
        op: The op's name.
        registry: Where the op is looked up; the global registry if None.
    """

    def __init__(self, name: str, op: str, registry: OpRegistryInterface | None = None) -> None:
        self._node = NodeDef(name=name)
        self._control_inputs: list[str] = []
        self._errors: list[str] = []
        self._inputs_specified = 0
        self._op_def: OpDef | None = None
        try:
            self._op_def = (registry or global_op_registry()).look_up_op_def(op)
            self._node.op = self._op_def.name
        except OpError as error:
            self._errors.append(error.message)

    @overload
    def input(self, node: str, index: int, dtype: DataType) -> Self: ...
    @overload
    def input(self, node: FakeInput) -> Self: ...
    def input(
        self, node: str | FakeInput, index: int = 0, dtype: DataType = DataType.DT_INVALID
    ) -> Self:
        """Give the next argument one tensor: output `index`, of type `dtype`, of a node.

        In tests, `input(fake_input(...))` makes up the tensors that the argument takes.
        """
        arg = self._next_arg()
        if arg is None:
            pass
        elif isinstance(node, FakeInput):
            self._add_fake_input(arg, node)
        else:
            self._add_single_input(arg, node, index, dtype)
        return self

    def input_list(self, tensors: Sequence[tuple[str, int, DataType]]) -> Self:
        """Give the next argument, `N * T` or a type list, its tensors: (node, index, dtype)."""
        arg = self._next_arg()
        if arg is not None:
            self._add_list_input(arg, tensors)
        return self

    def control_input(self, node: str) -> Self:
        """Make the node run after another; control inputs always come last."""
        self._control_inputs.append(node)
        return self

    def device(self, device: str) -> Self:
        """Set the device that the node asks for."""
        self._node.device = device
        return self

    def attr(self, name: str, value: Any) -> Self:
        """Set an attr to an AttrValue or a Python object (see `opkernel.opdef.core.attr_value`).

        A second value for an attr, be it inferred, must be equal to the first.
        """
        attr_def = None if self._op_def is None else find_attr(self._op_def, name)
        try:
            if attr_def is None:
                attr_value = infer_attr_from_python(value)
            else:
                attr_value = attr_from_python(value, attr_def.type)
        except InvalidArgumentError as error:
            self._errors.append(f"Attr '{name}': {error.message}")
            return self
        self._set_attr(name, attr_value)
        return self

    def finalize(self) -> NodeDef:
        """The node, with defaults for the attrs not given; may be called again.

        `validate_node_def` finds faults that this method leaves out: values of attrs and missing ones.

        Raises:
            InvalidArgumentError: inputs do not go with the op, or attrs contradict each other.
        """
        errors = list(self._errors)
        op_def = self._op_def
        if op_def is not None and self._inputs_specified < len(op_def.input_arg):
            errors.append(
                f"{self._inputs_specified} inputs specified of {len(op_def.input_arg)} inputs in Op"
            )
        if errors or op_def is None:
            raise InvalidArgumentError(self._error_text(errors))
        node = NodeDef()
        node.CopyFrom(self._node)
        node.input.extend(f"^{name}" for name in self._control_inputs)
        add_defaults_to_node_def(node, op_def)
        return node

    def _error_text(self, errors: Sequence[str]) -> str:
        where = f"while building NodeDef '{self._node.name}'"
        if self._op_def is not None:
            where += f" using {summarize_op_def(self._op_def)}"
        if len(errors) == 1:
            return f"{errors[0]} {where}"
        return f"{len(errors)} errors {where}:\n" + "\n".join(errors)

    def _next_arg(self) -> OpDef.ArgDef | None:
        if self._op_def is None:
            return None
        num_args = len(self._op_def.input_arg)
        if self._inputs_specified >= num_args:
            self._errors.append(f"More Input() calls than the {num_args} input_args")
            return None
        self._inputs_specified += 1
        return self._op_def.input_arg[self._inputs_specified - 1]

    def _add_input(self, node: str, index: int) -> None:
        if not node:
            self._errors.append("Empty input node name")
        elif node.startswith("^"):
            self._errors.append(f"Non-control input starting with ^: {node}")
        else:
            self._node.input.append(f"{node}:{index}" if index > 0 else node)

    def _add_single_input(self, arg: OpDef.ArgDef, node: str, index: int, dtype: DataType) -> None:
        self._add_input(node, index)
        if is_list_arg(arg):
            self._errors.append(f"Single tensor passed to '{arg.name}', expected list")
        elif arg.type:
            self._check_input_type(arg, DataType(arg.type), dtype)
        else:
            self._check_input_ref(arg, dtype)
            self._set_attr(arg.type_attr, AttrValue(type=dtype.base))

    def _add_fake_input(self, arg: OpDef.ArgDef, fake: FakeInput) -> None:
        assert self._op_def is not None  # or there would be no argument
        name = chr(ord("a") + (self._inputs_specified - 1) % 26)
        try:
            types = fake.types_for(arg, self._node, self._op_def)
        except InvalidArgumentError as error:
            self._errors.append(error.message)
            self._inputs_specified -= 1  # as in TensorFlow, the argument is left without input
            return
        if isinstance(types, DataType):
            self._add_single_input(arg, name, 0, types)
        else:
            self._add_list_input(arg, [(name, i, dtype) for i, dtype in enumerate(types)])

    def _add_list_input(
        self, arg: OpDef.ArgDef, tensors: Sequence[tuple[str, int, DataType]]
    ) -> None:
        for node, index, _ in tensors:
            self._add_input(node, index)
        dtypes = [dtype for _, _, dtype in tensors]
        if arg.number_attr:
            self._set_attr(arg.number_attr, AttrValue(i=len(dtypes)))
            self._infer_repeated_type(arg, dtypes)
        elif arg.type_list_attr:
            for dtype in dtypes:
                self._check_input_ref(arg, dtype)
            bases = AttrValue.ListValue(type=[dtype.base for dtype in dtypes])
            self._set_attr(arg.type_list_attr, AttrValue(list=bases))
        else:
            self._errors.append(f"List provided to input '{arg.name}' when single Tensor expected")

    def _infer_repeated_type(self, arg: OpDef.ArgDef, dtypes: Sequence[DataType]) -> None:
        """Check the types of an `N * T` argument, and set T from the first of them."""
        if not dtypes:
            return
        expected = DataType(arg.type) if arg.type else dtypes[0].base
        if not arg.type:
            self._set_attr(arg.type_attr, AttrValue(type=expected))
        for dtype in dtypes:
            self._check_input_type(arg, expected, dtype)

    def _check_input_type(self, arg: OpDef.ArgDef, base: DataType, dtype: DataType) -> None:
        expected = base.ref if arg.is_ref else base
        # A reference may stand where a value is wanted.
        if dtype != expected and dtype.base != expected:
            self._errors.append(
                f"Input '{arg.name}' passed {dtype.string} expected {expected.string}"
            )

    def _check_input_ref(self, arg: OpDef.ArgDef, dtype: DataType) -> None:
        if arg.is_ref and not dtype.is_ref:
            self._errors.append(f"Input '{arg.name}' passed {dtype.string} expected ref type")

    def _set_attr(self, name: str, value: AttrValue) -> None:
        if name not in self._node.attr:
            self._node.attr[name].CopyFrom(value)
            return
        found = self._node.attr[name]
        if not are_attr_values_equal(found, value):
            self._errors.append(
                f"Inconsistent values for attr '{name}' {summarize_attr_value(found)} vs. "
                f"{summarize_attr_value(value)}"
            )
