"""NumpyKernels: for plans of programs that have nothing but NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from opkernel.decompile.expressions import is_plain
from opkernel.decompile.numpy_functions import NEEDED_ATTRS, NUMPY_FUNCTIONS
from opkernel.graph import Operation
from opkernel.kernel import (
    FunctionKernel,
    FunctionKernelFactory,
    KernelContract,
    OpKernel,
    forward_input,
)
from opkernel.opdef import attr_to_python
from opkernel.runtime.plan.pointwise import ufunc_of
from opkernel.runtime.program.kernels import KernelCache
from opkernel.types import DataType


class NumpyKernels(KernelCache):
    """Gives kernels of NumPy functions in place of the catalogue's kernels.

    Args:
        missing: takes the ops that have none, each with the reason.
        args: those of a KernelCache.
        options: those of a KernelCache.
    """

    def __init__(self, missing: list[str], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._missing = missing

    def kernel(self, op: Operation) -> OpKernel:
        """The kernel of a node: a constant, a ufunc of NumPy, or one of our NumPy functions.

        Raises:
            NotFoundError: no kernel is registered for the node.
        """
        kernel = super().kernel(op)
        if kernel.const_tensor is not None:
            return kernel
        attrs = {
            attr.name: attr_to_python(op.node_def.attr[attr.name], attr.type)
            for attr in op.op_def.attr
        }
        wrong = list(_wrong(op, attrs))
        self._missing += wrong
        if not wrong and _is_of_numpy(kernel):
            return kernel
        function = NUMPY_FUNCTIONS.find(op.type)
        if function is None:
            self._missing.append(op.type)
            return NumpyKernel(kernel, np.positive, {})
        return NumpyKernel(kernel, function, _wanted_attrs(function, attrs))


class NumpyKernel(FunctionKernel):
    """The kernel of a function that stands in for another kernel, whose properties it has.

    Attributes:
        attrs: the keyword arguments of the function, as plain Python objects.
    """

    attrs: dict[str, Any]

    def __init__(
        self, kernel: OpKernel, function: Callable[..., Any], attrs: dict[str, Any]
    ) -> None:
        called = partial(function, **attrs) if attrs else function
        super().__init__(cast(Any, kernel), called, FunctionKernelFactory(function))
        self.contract, self.function = KernelContract(outputs_as_declared=True), called
        self.attrs = attrs


def name_in_numpy(function: Any) -> str | None:
    """The name of a ufunc of NumPy's; None for everything else."""
    name: str = getattr(function, "__name__", "")
    is_ufunc = isinstance(function, np.ufunc) and getattr(np, name, None) is function
    return name if is_ufunc else None


def _wrong(op: Operation, attrs: dict[str, Any]) -> Iterator[str]:
    """The reason why no program of NumPy alone can compute a node."""
    for dtype in dict.fromkeys(op.output_types):
        if not is_plain(dtype.base.numpy_dtype):
            yield f"{op.type} of type {dtype.string}"
    for attr, value in NEEDED_ATTRS.get(op.type, {}).items():
        if attrs.get(attr, value) != value:
            yield f"{op.type} with {attr}={attrs[attr]!r}"


def _is_of_numpy(kernel: OpKernel) -> bool:
    if not isinstance(kernel, FunctionKernel):
        return False
    function = kernel.function
    return function is forward_input or name_in_numpy(ufunc_of(function)[0]) is not None


def _wanted_attrs(function: Any, attrs: dict[str, Any]) -> dict[str, Any]:
    """The attrs that a function wants, without those at its defaults."""
    if isinstance(function, np.ufunc):
        return {}
    wanted = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in attrs and parameter.kind is parameter.KEYWORD_ONLY:
            value = _python_value(attrs[parameter.name])
            if value != parameter.default:
                wanted[parameter.name] = value
    return wanted


def _python_value(value: Any) -> Any:
    """An attr as an object that a program without opkernel can hold."""
    if isinstance(value, DataType):
        return value.base.numpy_dtype.name
    if isinstance(value, float):  # attrs are float32
        return float(str(np.float32(value)))
    if isinstance(value, list):
        return tuple([_python_value(one) for one in value])
    return value.decode(errors="replace") if isinstance(value, bytes) else value
