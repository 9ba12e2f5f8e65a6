"""OpCall: one node with the values of its inputs, as text, as a GraphDef, and from one.

Inputs have several forms, and outputs of the same call are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import load_graph_def
from opkernel.kernel.context.inputs import TensorRef
from opkernel.opdef import (
    OpRegistrationData,
    OpRegistry,
    global_op_registry,
    in_out_types_for_node,
    infer_call,
    is_list_arg,
    summarize_attr_value,
)
from opkernel.proto import GraphDef, NodeDef
from opkernel.testing.op_runs import (
    Inputs,
    all_attrs,
    by_argument,
    graph_def_version_for,
    known_sizes,
    node_of,
)
from opkernel.testing.tolerance import Tolerance, difference, largest_finite
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto

_MAX_ELEMENTS = 24


class CheckFailure(AssertionError):
    """A kernel, or the shape function, breaks a rule.

    Attributes:
        call: The call on which the rule is broken.
        what: The rule and the fact.
    """

    def __init__(self, call: "OpCall", what: str) -> None:
        super().__init__(f"{what}\n{call}")
        self.call = call
        self.what = what


@dataclass(frozen=True, repr=False)
class OpCall:
    """A call of an op.

    Attributes:
        registration: The op.
        node_def: The node, with all attrs and a name for each input.
        inputs: The input tensors, flat; for an input by reference, the tensor that it refers to.
    """

    registration: OpRegistrationData
    node_def: NodeDef
    inputs: tuple[Any, ...]

    @property
    def input_types(self) -> list[DataType]:
        """The types of the inputs."""
        return in_out_types_for_node(self.node_def, self.registration.op_def)[0]

    def infer_shapes(self, *, with_values: bool = True) -> list[tuple[int, ...] | None]:
        """The shapes that kernels must give the outputs; -1 for sizes that the shape function leaves open.

        Raises:
            OpError: it refuses the inputs.
            CheckFailure: it raises something else.
        """
        values = [np.asarray(v) for v in self.inputs] if with_values else ()
        shapes = [np.shape(v) for v in self.inputs]
        try:
            return shapes_of_outputs(self.registration, self.node_def, shapes, values)
        except OpError:
            raise
        except Exception as error:
            what = f"the shape function raises {type(error).__name__}: {error}"
            raise CheckFailure(self, what) from error

    def __repr__(self) -> str:
        return f"<a call of {self.node_def.op}>"

    def __str__(self) -> str:
        """The call in a few lines: `Op`, its inputs with their values, its attrs."""
        op_def = self.registration.op_def
        types = self.input_types
        lines = [
            f"  {name}: {dtype.string}{list(np.shape(value))} = {_values_text(value)}"
            for name, dtype, value in zip(self.node_def.input, types, self.inputs, strict=True)
        ]
        attrs = [
            f"  {name} = {_attr_text(value)}" for name, value in sorted(self.node_def.attr.items())
        ]
        return "\n".join([op_def.name, *lines, *attrs])

    def graph_def(self) -> GraphDef:
        """The node in a graph, with a Const for each input.

        Raises:
            InvalidArgumentError: an input is of a type that no constant has.
        """
        graph = GraphDef()
        graph.versions.producer = graph_def_version_for(self.registration.op_def)
        for name, dtype, value in zip(
            self.node_def.input, self.input_types, self.inputs, strict=True
        ):
            constant = graph.node.add(name=name, op="Const")
            constant.attr["dtype"].type = dtype.base
            constant.attr["value"].tensor.CopyFrom(tensor_to_proto(value, dtype.base))
        graph.node.append(self.node_def)
        return graph


def shapes_of_outputs(
    registration: OpRegistrationData,
    node_def: NodeDef,
    shapes: Sequence[Sequence[int | None] | None],
    values: Sequence[Any] = (),
) -> list[tuple[int, ...] | None]:
    """What a shape function states for shapes and values, as `OpCall.infer_shapes` gives it."""
    version = graph_def_version_for(registration.op_def)
    context = infer_call(registration, node_def, shapes, values, version)
    return [*map(known_sizes, context.reliable_outputs())]


def call_of(op: str, inputs: Inputs, attrs: Mapping[str, Any]) -> OpCall:
    """A call of an op of the global registry with the inputs and attrs that `run_op` takes.

    Raises:
        NotFoundError: there is no such op.
        InvalidArgumentError: inputs or attrs do not fit it.
    """
    registration = global_op_registry().look_up(op)
    op_def = registration.op_def
    given = by_argument(op_def, inputs)
    lists = {arg.name for arg in op_def.input_arg if is_list_arg(arg)}
    arrays = {
        name: [*map(np.asarray, value)] if name in lists else np.asarray(value)
        for name, value in given.items()
    }
    node = node_of(op_def, all_attrs(op_def, arrays, attrs))
    flat: list[Any] = []
    for arg in op_def.input_arg:
        flat += arrays[arg.name] if arg.name in lists else [arrays[arg.name]]
    return OpCall(registration, node, tuple(flat))


def read_op_call(path: str | Path, op_registry: OpRegistry) -> OpCall:
    """The call that a file holds, as `OpCall.graph_def` wrote it.

    Raises:
        InvalidArgumentError: there is not one node whose inputs are constants.
    """
    graph = load_graph_def(path)
    constants = {node.name: node for node in graph.node if node.op == "Const"}
    fed = {name for node in graph.node for name in node.input}
    calls = [node for node in graph.node if node.name not in fed]
    if len(calls) != 1 or not set(calls[0].input) <= set(constants):
        raise InvalidArgumentError(f"{path}: expected one node whose inputs are constants")
    (node,) = calls
    inputs = [tensor_from_proto(constants[name].attr["value"].tensor) for name in node.input]
    return OpCall(op_registry.look_up(node.op), node, tuple(inputs))


def deed_of(error: Exception) -> str:
    """What code did that raised an error, in the words of failures."""
    if isinstance(error, OpError):
        return f"fails with {error.code.name}: {error.message}"
    return f"raises {type(error).__name__}: {error}"


def _values_text(value: Any) -> str:
    array = np.asarray(value)
    if array.size <= _MAX_ELEMENTS:
        return str(array.tolist())
    return np.array2string(array.reshape(-1), threshold=8, separator=", ")


def _attr_text(value: Any) -> str:
    try:
        return summarize_attr_value(value)
    except OpError:
        return str(value)


POISONS = 0xCB, 0x34
"""The bytes that memory is filled with for the first computation of a call, and for the second."""


def spread(value: Any) -> Any:
    """The same values with gaps between them; of rank 0, a NumPy scalar."""
    array = np.asarray(value)
    if array.ndim == 0 and not array.dtype.hasobject:
        return array[()]
    wide = np.empty([2 * size for size in array.shape], array.dtype)
    spread = wide[(slice(None, None, 2),) * array.ndim + (...,)]
    spread[...] = array
    spread.setflags(write=False)
    return spread


def tensor_of(value: Any) -> Any:
    """The tensor that an output is, or refers to."""
    return value.tensor if isinstance(value, TensorRef) else value


def is_opaque(value: Any) -> bool:
    """Whether a value holds elements that cannot be compared."""
    if isinstance(value, TensorRef):
        return True
    return value.dtype.hasobject and not all(isinstance(v, bytes) for v in value.ravel().tolist())


def first_unwritten(first: Any, second: Any) -> list[int] | None:
    """The first place where each of two outputs holds the one of `POISONS` of its computation."""
    if first.dtype.hasobject:
        return None
    bits = [
        np.ascontiguousarray(v).reshape(-1).view(np.uint8).reshape(np.size(v), -1)
        for v in (first, second)
    ]
    is_poison = [
        np.all(content == (poison & 1 if first.dtype == np.bool_ else poison), axis=-1)
        for content, poison in zip(bits, POISONS, strict=True)
    ]
    places = np.argwhere((is_poison[0] & is_poison[1]).reshape(np.shape(first)))
    return places[0].tolist() if len(places) else None


def difference_in(
    call: OpCall, actual: Any, expected: Any, tolerance: Tolerance | None
) -> str | None:
    """How results of the same call differ beyond rounding."""
    if actual is None or expected is None or is_opaque(actual):
        return None
    scale = max((_largest(value) for value in (*call.inputs, expected)), default=0.0)
    return difference(actual, expected, tolerance=tolerance, scale=scale)


def _largest(value: Any) -> float:
    """The largest finite absolute value of a tensor of floats; 0 for other tensors."""
    array = np.asarray(value)
    if array.dtype.kind not in "fcV" or array.dtype.hasobject:
        return 0.0
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):  # signalling NaN
        return largest_finite(array.astype(wide))


def has_extremes(call: OpCall) -> bool:
    """Whether floats are so large or small that the order of operations decides the result."""
    return any(
        (dtype.is_floating or dtype.is_complex) and _is_extreme(value)
        for value, dtype in zip(call.inputs, call.input_types, strict=True)
    )


def _is_extreme(value: Any) -> bool:
    wide = np.abs(np.asarray(value).astype(np.complex128))
    known = wide[np.isfinite(wide) & (wide != 0)]
    return bool(known.size) and (known.max() > 1e4 or known.min() < 1e-4)
