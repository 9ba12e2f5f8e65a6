"""Nodes that call functions of the Python program: PyFunc, PyFuncStateless and EagerPyFunc.

A node names its function by a token. A token stands for a function that the program registered, and is then a random
number of this process, which no file can hold; or for one that the permissions of the node's origin name.

Source: TensorFlow core/ops/script_ops.cc, python/lib/core/py_func.cc, python/ops/script_ops.py.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.string_tensors import string_tensor
from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
    error_of_function,
)
from opkernel.graph.core.graph import DEFAULT_GRAPHS
from opkernel.interrupts import setting
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.messages import short_repr
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, array_from_python, as_dtype

__all__ = ["EagerPyFunc", "PyFunc"]

_Results = Sequence[Any]
Backward = Callable[[g.Operation, Sequence[g.Tensor | None]], g.Gradients]


class PythonFunction:
    """A function that nodes may call while this object lives.

    Args:
        function: Takes arrays, and gives values that make arrays.
        backward: Adds the nodes of the gradient of a node that calls the function.

    Attributes:
        token: What nodes call it.
    """

    def __init__(self, function: Callable[..., Any], backward: Backward | None = None) -> None:
        self.function, self.backward = function, backward
        self.token = f"pyfunc_{os.urandom(16).hex()}"
        _functions[self.token] = self


_functions: weakref.WeakValueDictionary[str, PythonFunction] = weakref.WeakValueDictionary()


for _name, _is_stateful, _attrs in (
    ("PyFunc", True, []),
    ("PyFuncStateless", False, []),
    ("EagerPyFunc", True, ["is_async: bool = false"]),
):
    register_op(
        f"{_name}(input: Tin) -> output: Tout",
        attrs=["token: string", *_attrs, "Tin: list(type) >= 0", "Tout: list(type) >= 0"],
        shape_fn=unknown_shape,
        traits="runs_python",
        is_stateful=_is_stateful,
        doc="What the function of the program gives that `token` stands for.",
    )


@register_kernel("PyFunc", "PyFuncStateless")
class PyFunc(OpKernel):
    """Calls a function with arrays; its results must have the types of the outputs."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._token: str = construction.get_attr("token")

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the results.

        Raises:
            InvalidArgumentError: nobody registered the token, or the results are of other types or number.
            OpError: an error of the function, with the code that TensorFlow gives errors of its class.
        """
        registered = _functions.get(self._token)
        function = ctx.permissions.python.get(self._token) or getattr(registered, "function", None)
        if function is None:
            raise InvalidArgumentError(
                f"No function of this program is called {self._token!r}. If you trust the graph, name "
                f"the function with permissions=opkernel.Permissions(python={{{self._token!r}: "
                "function}) where the graph is loaded, imported or gets its Session"
            )
        arguments = [_own(argument) for argument in ctx.inputs]
        results = _called(lambda: self.results(function(*arguments)))
        if len(results) != len(self.output_types):
            raise InvalidArgumentError(
                f"{self._token} returns {len(results)} values, but expects to see "
                f"{len(self.output_types)} values."
            )
        for index, (result, dtype) in enumerate(zip(results, self.output_types, strict=True)):
            ctx.set_output(index, _checked(result, dtype, f"{index}-th value of {self._token}"))

    def results(self, returned: Any) -> _Results:
        """The arrays of the values that the function returned."""
        return [_array(value) for value in _values(returned)]


@register_kernel("EagerPyFunc")
class EagerPyFunc(PyFunc):
    """Calls a function with arrays; its results are converted to the types of the outputs."""

    def results(self, returned: Any) -> _Results:
        pairs = zip(
            _values(returned), self.output_types, strict=False
        )  # `compute` compares their number
        return [_converted(value, dtype) for value, dtype in pairs]


def _values(returned: Any) -> _Results:
    """What a function returned, as a sequence."""
    if returned is None:
        return []
    return returned if isinstance(returned, tuple | list) else [returned]


def _own(argument: Any) -> Any:
    """A copy that the function may write to; scalars are scalars of NumPy, and bytes."""
    return argument.copy() if getattr(argument, "ndim", 0) else argument[()]


def _called(call: Callable[[], _Results]) -> _Results:
    """The result of a call outside of all graphs, with errors as OpErrors."""
    try:
        with setting({DEFAULT_GRAPHS: ()}):
            return call()
    except OpError:
        raise
    except Exception as error:
        raise error_of_function(error) from error


def _array(value: Any) -> Any:
    """A value as an array of its own type; texts are bytes."""
    array = np.asarray(value)
    if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
        array = np.asarray(value, object)  # which keeps zeros at the end of bytes
    return array


def _converted(value: Any, dtype: DataType) -> Any:
    """A value as an array of a type; arrays are cast, values of Python must fit."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OSU":
        if value.size and dtype.numpy_dtype.kind == "O":
            return value  # which `compute` refuses: numbers are no strings
        return value.astype(dtype.numpy_dtype)
    array = array_from_python(value, dtype)
    if not all(isinstance(item, str | bytes) for item in array.flat if array.dtype.kind == "O"):
        raise TypeError(f"Cannot make a {dtype.string} tensor of {short_repr(value)}")
    return array


def _checked(result: Any, dtype: DataType, what: str) -> Any:
    """A result as a tensor of the type that it must have, in memory of its own."""
    if result.dtype.kind in "OSU":
        texts = [_bytes(item) for item in result.flat]
        actual, tensor = DataType.DT_STRING, string_tensor(result.shape, texts)
    else:
        own_order = result.dtype.newbyteorder("=")
        actual, tensor = _type_of(result), np.array(result, own_order, order="C")
    if actual != dtype:
        raise InvalidArgumentError(f"{what} is {actual.string}, but expects {dtype.string}")
    check_allocation(tensor.shape, dtype)
    return tensor


def _bytes(item: Any) -> bytes:
    if isinstance(item, bytes):
        return bytes(item)
    if isinstance(item, str):
        return item.encode()
    raise InternalError(f"Unsupported object type {type(item).__name__}")


def _type_of(array: Any) -> DataType:
    try:
        return as_dtype(array.dtype)
    except InvalidArgumentError:
        raise InternalError(f"Unsupported numpy type: {array.dtype}") from None


@g.register_gradient("EagerPyFunc")
def eager_py_func_gradient(op: g.Operation, *grads: g.Tensor | None) -> g.Gradients:
    """What the function's own `backward` adds."""
    registered = _functions.get(op.get_attr("token").decode())
    if registered is None or registered.backward is None:
        raise UnimplementedError(
            f"{op.name} has no gradient: its function was not passed to opkernel.py_function"
        )
    return registered.backward(op, grads)
