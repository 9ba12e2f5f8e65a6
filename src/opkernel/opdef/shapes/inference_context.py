"""`InferenceContext`: the input of a shape function, and the place for its answer.

One context is made for each node. It knows the shapes of the inputs, the values of constant
inputs, the node's attrs, and the contents of resource inputs; the function sets the shapes of the
outputs. All that needs only shapes and dimensions is inherited from `ShapeAlgebra`, what
resources hold from `HeldShapes`, the values of inputs from `InputValues`.

Source: TensorFlow core/framework/shape_inference.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.messages import did_you_mean
from opkernel.opdef.core.attr_value import attr_to_python
from opkernel.opdef.core.declarations import GRAPH_DEF_VERSION, attr_type_of, find_attr, is_list_arg
from opkernel.opdef.core.node_def import name_ranges_for_node
from opkernel.opdef.shapes.input_values import Array, HeldTensor, InputShape, InputValues
from opkernel.opdef.shapes.shape_handles import ShapeHandle
from opkernel.proto import FullTypeDef, NodeDef, OpDef

ShapeFn: TypeAlias = Callable[["InferenceContext"], None]
"""A shape function: reads a context and sets its outputs."""
Ranges: TypeAlias = dict[str, tuple[int, int]]

_MISSING = object()
_PLAIN_KINDS = ("i", "b", "f")
"""The fields of an AttrValue that hold the Python value itself."""
_MAX_COUNTS = 4096


class InferenceContext(InputValues):
    """The inputs, attrs and outputs of one node, for its shape function.

    `input_tensors` are the values of inputs that are constant (None, or beyond the end, where one
    is not); `input_tensors_as_shapes` the partial values of inputs that hold shapes; `handle_shapes`
    the (shape, dtype) pairs of the contents of resource and variant inputs. The requests of the
    function can be read afterwards, so that only the requested constants need to be computed.

    Raises:
        InvalidArgumentError: the number of input shapes is not the number of the node's inputs.
    """

    __slots__ = (
        "_attrs",
        "_doubted",
        "_outputs",
        "_ranges",
        "graph_def_version",
        "node_def",
        "op_def",
    )

    def __init__(
        self,
        op_def: OpDef,
        node_def: NodeDef,
        input_shapes: Sequence[InputShape],
        input_tensors: Sequence[Array | None] = (),
        input_tensors_as_shapes: Sequence[InputShape] = (),
        handle_shapes: Sequence[Sequence[HeldTensor] | None] = (),
        graph_def_version: int = GRAPH_DEF_VERSION,
    ) -> None:
        self.op_def = op_def
        self.node_def = node_def
        self.graph_def_version = graph_def_version
        super().__init__(input_shapes, input_tensors, input_tensors_as_shapes, handle_shapes)
        self._attrs: dict[str, object] = {}
        self._doubted: tuple[int, ...] = ()
        self._ranges: tuple[Ranges, Ranges] | None = None
        self._outputs: list[ShapeHandle | None] = [None] * self._count_outputs()

    def _count_outputs(self) -> int:
        """Number of outputs, from the declaration; checks the number of inputs on the way."""
        inputs, outputs = _counts_of(self.op_def)
        if inputs < 0:
            inputs = max((stop for _, stop in self._name_ranges()[0].values()), default=0)
        if inputs != len(self._inputs):
            raise InvalidArgumentError(
                f"Wrong number of inputs passed: {len(self._inputs)} while {inputs} expected "
                "based on NodeDef"
            )
        if outputs < 0:
            outputs = max((stop for _, stop in self._name_ranges()[1].values()), default=0)
        return outputs

    def _name_ranges(self) -> tuple[Ranges, Ranges]:
        if self._ranges is None:
            self._ranges = name_ranges_for_node(self.node_def, self.op_def)
        return self._ranges

    # Inputs

    def num_inputs(self) -> int:
        """The number of inputs of the node, each tensor of a list counted."""
        return len(self._inputs)

    @overload
    def input(self, which: int) -> ShapeHandle: ...
    @overload
    def input(self, which: str) -> list[ShapeHandle]: ...
    def input(self, which: int | str) -> ShapeHandle | list[ShapeHandle]:
        """The shape of input `which`; by the name of an input argument, the list of its shapes.

        Raises:
            InvalidArgumentError: the op has no input argument of this name, or no such input.
        """
        if not isinstance(which, str):
            try:
                return self._inputs[which]
            except IndexError:
                raise self._no_such("input", which, len(self._inputs)) from None
        return self._inputs[self._places(0, which)]

    def set_input(self, index: int, shape: ShapeHandle) -> None:
        """Replace the known shape of an input."""
        self._inputs[index] = shape

    def merge_input(self, index: int, shape: ShapeHandle) -> bool:
        """Refine an input's shape; False, and nothing changed, if it cannot be `shape` too."""
        try:
            self._inputs[index] = self.merge(self._inputs[index], shape)
        except InvalidArgumentError:
            return False
        return True

    def relax_input(self, index: int, shape: ShapeHandle) -> bool:
        """Keep the part of an input's shape that holds of `shape` too; whether that changed anything."""
        old = self._inputs[index]
        self._inputs[index] = self.relax(old, shape)
        return self._inputs[index] is not old

    # Outputs

    def num_outputs(self) -> int:
        """The number of outputs of the node, each tensor of a list counted."""
        return len(self._outputs)

    def outputs(self) -> list[ShapeHandle | None]:
        """The shapes set for all outputs, None where none was."""
        return list(self._outputs)

    @overload
    def output(self, which: int) -> ShapeHandle | None: ...
    @overload
    def output(self, which: str) -> list[ShapeHandle | None]: ...
    def output(self, which: int | str) -> ShapeHandle | list[ShapeHandle | None] | None:
        """The shape set for output `which`, None before; by name, the list of an argument's.

        Raises:
            InvalidArgumentError: the op has no output argument of this name, or no such output.
        """
        if not isinstance(which, str):
            try:
                return self._outputs[which]
            except IndexError:
                raise self._no_such("output", which, len(self._outputs)) from None
        return self._outputs[self._places(1, which)]

    def set_output(self, which: int | str, shape: ShapeHandle | Sequence[ShapeHandle]) -> None:
        """Set the shape of output `which`; by the name of an output argument, the list of all its.

        Raises:
            InvalidArgumentError: the op has no such output argument, or as many shapes.
        """
        if isinstance(shape, ShapeHandle):
            if isinstance(which, str):
                self.set_output(which, [shape])
                return
            try:
                self._outputs[which] = shape
            except IndexError:
                raise self._no_such("output", which, len(self._outputs)) from None
            return
        if not isinstance(which, str):
            raise InvalidArgumentError(
                f"Output {which} must have exactly 1 shape, a ShapeHandle as make_shape gives, not {shape!r}"
            )
        places = self._places(1, which)
        count = places.stop - places.start
        if len(shape) != count:
            raise InvalidArgumentError(f"Must have exactly {count} shapes.")
        self._outputs[places] = shape

    def doubt_output(self, which: int) -> None:
        """State that a kernel may give output `which` another shape than the one set.

        This is for the few shape functions of TensorFlow that contradict its kernels. Who asks for the
        shape gets it, as from TensorFlow; passes and checks of kernels do not rely on it.

        Raises:
            InvalidArgumentError: the op has no such output.
        """
        if not 0 <= which < len(self._outputs):
            raise self._no_such("output", which, len(self._outputs))
        self._doubted += (which,)

    def forget_doubts(self) -> None:
        """Doubt no output, before the shape function runs, perhaps again."""
        self._doubted = ()

    def reliable_outputs(self) -> list[ShapeHandle | None]:
        """As `outputs`, with None also where the shape is doubted."""
        shapes = self.outputs()
        for which in self._doubted:
            shapes[which] = None
        return shapes

    @property
    def has_doubts(self) -> bool:
        """Whether the shape of an output is doubted."""
        return bool(self._doubted)

    def _places(self, side: int, name: str) -> slice:
        found = self._name_ranges()[side].get(name)
        if found is None:
            names = ", ".join(self._name_ranges()[side]) or "none"
            what = ("input", "output")[side]
            raise InvalidArgumentError(f"Unknown {what} name: {name}; {what}s are {names}")
        return slice(*found)

    def _no_such(self, what: str, index: int, number: int) -> InvalidArgumentError:
        """The error for an input or output that the node has not."""
        numbers = {0: "", 1: ", number 0"}.get(number, f", numbers 0 to {number - 1}")
        plural = "" if number == 1 else "s"
        return InvalidArgumentError(
            f"{self.op_def.name} has no {what} {index}: it has {number} {what}{plural}{numbers}"
        )

    # Attrs

    def get_attr(self, name: str) -> Any:
        """The value of an attr as a Python object (`attr_to_python`); the default if not set.

        Raises:
            NotFoundError: the node has no such attr.
        """
        value = self.find_attr(name, _MISSING)
        if value is _MISSING:
            hint = did_you_mean(name, self.node_def.attr)
            raise NotFoundError(f"No attr named '{name}' in NodeDef: {self.node_def.name}{hint}")
        return value

    def find_attr(self, name: str, default: object = None) -> Any:
        """The value of an attr as a Python object, or `default` if there is none."""
        try:
            return self._attrs[name]
        except KeyError:
            pass
        node_attrs = self.node_def.attr
        if name in node_attrs:
            message = node_attrs[name]
            kind = message.WhichOneof("value")
            if kind in _PLAIN_KINDS:
                value = self._attrs[name] = getattr(message, kind)
                return value
            declared = find_attr(self.op_def, name)
        else:
            declared = find_attr(self.op_def, name)
            if declared is None or not declared.HasField("default_value"):
                return default
            message = declared.default_value
        type_ = attr_type_of(message) if declared is None else declared.type
        value = self._attrs[name] = attr_to_python(message, type_)
        return value

    def ret_types(self) -> FullTypeDef:
        """The full types that the op declares for its outputs, with the node's attrs filled in.

        Raises:
            InvalidArgumentError, UnimplementedError: as `specialize_type`.
        """
        from opkernel.opdef.full_type import specialize_type  # few shape functions ask for it

        return specialize_type(self.node_def, self.op_def)


_counts: dict[int, tuple[OpDef, int, int]] = {}
"""By identity of an OpDef, which is kept so that no other takes its place: `_counts_of` it."""


def _counts_of(op_def: OpDef) -> tuple[int, int]:
    """The numbers of inputs and outputs of an op; -1 where the attrs of a node decide."""
    known = _counts.get(id(op_def))
    if known is None:
        if len(_counts) >= _MAX_COUNTS:
            _counts.clear()
        inputs, outputs = (
            -1 if any(map(is_list_arg, args)) else len(args)
            for args in (op_def.input_arg, op_def.output_arg)
        )
        known = _counts[id(op_def)] = op_def, inputs, outputs
    return known[1:]
