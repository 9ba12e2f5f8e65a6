"""Draws calls of an op at which its gradient can be compared with finite differences.

The calls are drawn like calls for kernels. Then their types are made double or float, where op and kernel
allow that. Inputs that may have a gradient are moved away from places where ops have no derivative: no two
numbers are the same, none is an integer, infinite or NaN. Numbers between 0 and 1, and above 1, serve ops
that are not defined elsewhere.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from opkernel.errors import OpError
from opkernel.kernel.registry.registration import violated_constraint
from opkernel.opdef import in_out_types_for_node, validate_node_def
from opkernel.proto import KernelDef, NodeDef
from opkernel.testing.draw_calls import CallSource, op_calls
from opkernel.testing.draw_values import Draw
from opkernel.testing.gradient_check import is_precise
from opkernel.testing.op_call import OpCall
from opkernel.types import Array, DataType

_GOLDEN = (np.sqrt(5) - 1) / 2
_TYPES = [DataType.DT_DOUBLE, DataType.DT_FLOAT]
DOMAINS = ["near", "unit", "above one"]

_CUTS: list[Any] = [None, 0, np.s_[:1], np.s_[..., :1]]
"""Parts of an input: all; its first row, an axis less; its first row; the first of each row."""


@st.composite
def gradient_calls(draw: Draw, source: CallSource) -> OpCall:
    """Calls with an input that may have a gradient, of a type whose finite differences say something."""
    call = draw(op_calls(source))
    wanted = draw(st.sampled_from(_TYPES))
    moved = away_from_kinks(call, source, draw(st.sampled_from(DOMAINS)), wanted)
    return reject() if moved is None else _cut(draw, moved, source)


def _cut(draw: Draw, call: OpCall, source: CallSource) -> OpCall:
    """The call, or one like it, one of whose inputs is to be broadcast."""
    fixed = _given(call.node_def, source)
    candidates = [
        index
        for index, (name, dtype, value) in enumerate(
            zip(call.node_def.input, call.input_types, call.inputs, strict=True)
        )
        if is_precise(dtype) and name not in fixed and np.size(value)
    ]
    cut = draw(st.sampled_from(_CUTS))
    if cut is None or len(candidates) < 2:
        return call
    index = draw(st.sampled_from(candidates))
    if np.ndim(call.inputs[index]) == 0:
        return call
    inputs = [*call.inputs[:index], np.asarray(call.inputs[index][cut]), *call.inputs[index + 1 :]]
    other = OpCall(call.registration, call.node_def, tuple(inputs))
    try:
        other.infer_shapes()
    except OpError:
        return call
    return other


def away_from_kinks(
    call: OpCall, source: CallSource, domain: str, wanted: DataType = DataType.DT_DOUBLE
) -> OpCall | None:
    """A call like another, at which gradients can be compared; None where nothing has a gradient.

    Args:
        call: the other call.
        source: the source of the call: inputs that an author gave stay.
        domain: one of `DOMAINS`.
        wanted: the type that inputs are to be of, where op and kernels allow that.
    """
    node = _with_types(call.node_def, source, wanted)
    dtypes = in_out_types_for_node(node, source.registration.op_def)[0]
    if not any(map(is_precise, dtypes)):
        return None
    fixed = _given(node, source)
    values = [
        value if name in fixed or not is_precise(dtype) else _moved(value, dtype, index, domain)
        for index, (name, dtype, value) in enumerate(
            zip(node.input, dtypes, call.inputs, strict=True)
        )
    ]
    return OpCall(source.registration, node, tuple(values))


def _given(node: NodeDef, source: CallSource) -> set[str]:
    """The inputs whose values an author gave."""
    return {name for arg in source.inputs for name in node.input if _is_of(name, arg)}


def _is_of(name: str, arg: str) -> bool:
    """Whether an input, `xs_1`, belongs to an argument, `xs`."""
    return name == arg or (name.startswith(f"{arg}_") and name[len(arg) + 1 :].isdigit())


def _with_types(drawn: NodeDef, source: CallSource, wanted: DataType) -> NodeDef:
    """The node with a type in all type attrs, or else double or float, where op and kernel take that."""
    node = drawn
    for attr in source.registration.op_def.attr:
        if attr.type not in ("type", "list(type)") or attr.name in source.attrs:
            continue
        for dtype in dict.fromkeys([wanted, DataType.DT_DOUBLE, DataType.DT_FLOAT]):
            other = _with_type(node, attr.name, dtype)
            if _is_taken(other, source.kernel_defs, source):
                node = other
                break
    return node


def _with_type(node: NodeDef, attr: str, wanted: DataType) -> NodeDef:
    other = NodeDef()
    other.CopyFrom(node)
    value = other.attr[attr]
    if value.WhichOneof("value") == "type":
        value.type = _as_precise(DataType(value.type), wanted)
    else:
        value.list.type[:] = [_as_precise(DataType(one), wanted) for one in value.list.type]
    return other


def _as_precise(dtype: DataType, wanted: DataType) -> DataType:
    """The type wanted, or the complex one of the same precision for a complex one."""
    if not dtype.is_complex:
        return wanted
    is_double = wanted == DataType.DT_DOUBLE
    return DataType.DT_COMPLEX128 if is_double else DataType.DT_COMPLEX64


def _is_taken(node: NodeDef, kernel_defs: Sequence[KernelDef], source: CallSource) -> bool:
    try:
        validate_node_def(node, source.registration.op_def)
        return any(violated_constraint(one, node) is None for one in kernel_defs)
    except OpError:
        return False


def _moved(value: Any, dtype: DataType, index: int, domain: str) -> Array:
    """Values of a type near drawn ones, or in a domain; all are different."""
    shape = np.shape(value)
    size = int(np.prod(shape, dtype=np.int64))
    places = np.arange(size) + 1 + 31 * index
    spread = (places * _GOLDEN % 1).reshape(shape)
    moved = _in_domain(_near(value, shape), spread, domain)
    if dtype.is_complex:
        imaginary = (places * np.sqrt(2) % 1).reshape(shape) - 0.4
        moved = moved + 1j * imaginary
    return np.asarray(np.round(moved, 5), dtype.numpy_dtype)


def _near(value: Any, shape: Sequence[int]) -> Array:
    """The real part of drawn values; zeros where they are large, not finite, or no numbers."""
    array = np.asarray(value)
    if array.dtype.hasobject:
        return np.zeros(shape)
    numbers = array.astype(np.complex128).real
    return np.where(np.abs(numbers) < 100, numbers, 0)


def _in_domain(near: Array, spread: Array, domain: str) -> Array:
    if domain == "near":
        return near + 0.02 + 0.2 * spread
    return 0.05 + 0.9 * spread if domain == "unit" else 1.1 + 2 * spread
