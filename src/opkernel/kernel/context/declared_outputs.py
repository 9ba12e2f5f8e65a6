"""Whether the outputs of a kernel are as its op declares: one check, with one set of messages.

Every call of a kernel that does not claim `outputs_as_declared` makes the check (`verification`).
`opkernel test`, sanitized sessions and OPKERNEL_CHECK_CONTRACTS=1 make it to test claims.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import InternalError
from opkernel.kernel.context.inputs import TensorRef
from opkernel.types import Array

if TYPE_CHECKING:
    from opkernel.kernel.context.construction import KernelFacts
    from opkernel.kernel.contract import KernelContract
    from opkernel.kernel.node_properties import Arg, NodeProperties

_HOLDERS = frozenset({FunctionType, MethodType, partial, CellType, dict, list, tuple})
_DEPTH = 5  # from a partial to a value in a dict in a cell of its function


def _undeclared(kernel: KernelFacts, index: int, value: Any) -> str | None:
    """The kind of an output that is no tensor of the declared type; None for a right one."""
    is_ref, dtype = kernel.output_types[index].is_ref, getattr(value, "dtype", None)
    if is_ref and isinstance(value, TensorRef):
        dtype = kernel.output_dtypes[index] if value.tensor is None else value.tensor.dtype
    elif is_ref or dtype is None:
        return kind_of(value)
    if dtype == kernel.output_dtypes[index]:
        return None
    return f"a reference to {dtype}" if is_ref else str(dtype)


def check_output(kernel: KernelFacts, index: int, value: Any) -> None:
    """Raise InternalError unless an output is a tensor of the type that the node declares."""
    given = _undeclared(kernel, index, value)
    if given is not None:
        declared = kernel.output_types[index].string
        raise InternalError(f"output {index} must be {declared}, the kernel set {given}")


def check_outputs(kernel: KernelFacts, outputs: Sequence[Any]) -> None:
    """Raise InternalError unless there are as many outputs as the node has, of their types.

    None is one that is not set.
    """
    dtypes = kernel.output_dtypes
    if len(outputs) != len(dtypes):
        raise InternalError(f"{len(dtypes)} outputs expected, the kernel gave {len(outputs)}")
    for index, value in enumerate(outputs):
        if getattr(value, "dtype", None) is not dtypes[index] and value is not None:
            check_output(kernel, index, value)


def check_shape(index: int, value: Any, shape: Sequence[int | None] | None, told: str = "") -> None:
    """Raise InternalError unless an output has a shape that the shape function allows.

    Args:
        index: Which output it is.
        value: The tensor.
        shape: The shape function's answer; None, or a negative size, where it leaves a size open.
        told: The facts that the shape function was told, if not all.
    """
    given = tuple(value.shape)
    if shape is None or _fits(shape, given):
        return
    sizes = ",".join(["?" if size is None or size < 0 else str(size) for size in shape])
    raise InternalError(
        f"the kernel gives output {index} the shape {list(given)}, "
        f"where the shape function{told} says [{sizes}]"
    )


def _fits(shape: Sequence[int | None], sizes: tuple[int, ...]) -> bool:
    """Whether sizes fit a shape, in which negative sizes, and None, are open."""
    if shape == sizes:
        return True
    return len(shape) == len(sizes) and all(
        want is None or want < 0 or want == size for want, size in zip(shape, sizes, strict=True)
    )


def check_memory(
    node: NodeProperties,
    claims: KernelContract,
    function: Callable[..., Any] | None,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
) -> None:
    """Raise InternalError where an output is memory that its kernel does not claim it may be.

    A kernel that claims nothing of its outputs may hand on an input as it is.

    Args:
        node: The node.
        claims: The claims of its kernel.
        function: The function of a function kernel; the outputs of other kernels may be anything.
        inputs: The inputs of the computation, flat.
        outputs: The outputs of the computation, flat.
    """
    allowed = claims.may_alias
    if allowed is True or (allowed is None and function is None):
        return
    for output_arg, output, index in _arrays(outputs, node.output_args):
        if not claims.outputs_as_declared and any(output is value for value in inputs):
            continue
        for input_arg, value, number in _arrays(inputs, node.input_args):
            is_allowed = (output_arg, input_arg) in (allowed or ())
            if not is_allowed and np.may_share_memory(output, value):
                raise InternalError(
                    f"the kernel gives memory of input {number} as output {index}; {_UNCLAIMED_VIEW}"
                )
        if function is not None and allowed is None and _keeps(function, output):
            raise InternalError(
                f"the kernel gives an array that it keeps as output {index}; {_UNCLAIMED_VIEW}"
            )


_UNCLAIMED_VIEW = (
    'its contract does not say may_alias, its registration does not say kind="view": it must give '
    "new memory, such as a copy"
)


def flat_outputs(kernel: KernelFacts, result: Any) -> list[Any]:
    """The outputs in the value that a function returned, flat.

    Raises:
        InternalError: they are not as many as the node has.
    """
    args = kernel.properties.output_args
    values = (result,) if len(args) == 1 else _several(result, len(args)) if args else ()
    flat: list[Any] = []
    for arg, value in zip(args, values, strict=True):
        flat += _several(value, arg.stop - arg.start) if arg.is_list else (value,)
    return flat


@lru_cache
def is_as_declared(
    function: Callable[..., Any], inputs: tuple[np.dtype[Any], ...], output: np.dtype[Any]
) -> bool:
    """Whether it is certain that a function gives one output, of a type: NumPy says so of ufuncs."""
    if not isinstance(function, np.ufunc) or output.hasobject:
        return False
    try:
        return function.resolve_dtypes((*inputs, None))[len(inputs) :] == (output,)
    except (TypeError, ValueError):  # it takes no such inputs, or not as many
        return False


def _several(result: Any, count: int) -> Sequence[Any]:
    """A sequence of so many values; the rows of an array are none."""
    if not isinstance(result, tuple | list):
        raise InternalError(f"{count} outputs expected, the kernel gave {kind_of(result)}")
    if len(result) != count:
        raise InternalError(f"{count} outputs expected, the kernel gave {len(result)}")
    return result


def kind_of(value: Any) -> str:
    """The kind of a value in words: `None`, `a list`."""
    if isinstance(value, np.ndarray | np.generic):
        return "one array"
    return "None" if value is None else f"a {type(value).__name__}"


def _arrays(tensors: Sequence[Any], args: Iterable[Arg]) -> Iterator[tuple[str, Any, int]]:
    """The arrays among tensors that have elements, with the names of their arguments and numbers."""
    for arg in args:
        for index in range(arg.start, arg.stop):
            if isinstance(tensors[index], np.ndarray) and tensors[index].size:
                yield arg.name, tensors[index], index


def _keeps(function: Callable[..., Any], array: Array) -> bool:
    """Whether a function can reach the memory of an array from call to call.

    It can by its globals, closure, defaults, attributes and filled-in arguments, and through lists and
    dicts there.
    """
    owner, seen = _owner(array), set[int]()
    layer: list[Any] = [function]
    for depth in range(_DEPTH):
        found = [one for one in gc.get_referents(*layer) if id(one) not in seen]
        if any(isinstance(one, np.ndarray) and _owner(one) is owner for one in found):
            return True
        seen.update(map(id, found))
        layer = [one for one in found if _holds(one, depth)]
    return False


def _owner(array: Array) -> Any:
    """The object that owns the memory of an array."""
    return array if array.base is None else array.base


def _holds(value: Any, depth: int) -> bool:
    """Whether arrays are looked for in a value: at first in any object, later in containers."""
    if depth:
        return type(value) in _HOLDERS
    return not isinstance(value, ModuleType | type | BuiltinFunctionType | np.ndarray)
