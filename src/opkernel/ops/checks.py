"""Ops that check values: Assert, CheckNumerics, CheckNumericsV2, ToBool.

Source: TensorFlow core/ops/logging_ops.cc, core/ops/array_ops.cc, core/ops/functional_ops.cc,
core/kernels/logging_ops.cc, core/kernels/check_numerics_op.cc, core/kernels/functional_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import no_outputs, scalar_shape, unchanged_shape
from opkernel.opdef.text.tensor_summary import summarize_values
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

ASSERT = register_op(
    "Assert",
    inputs=["condition: bool", "data: T"],
    attrs=["T: list(type) >= 1", "summarize: int = 3"],
    shape_fn=no_outputs,
    traits="debug_only clustering=assertion",
    is_stateful=True,
    doc="Fails unless `condition` is true; the error tells `summarize` values of each of `data`.",
)


@register_kernel(ASSERT, device="DEFAULT", host_memory=["condition", "data"], factory=True)
def assert_(*, T: list[DataType], summarize: int) -> Callable[[Any, list[Any]], None]:
    int32_attr("summarize", summarize)

    def check(condition: Any, data: list[Any]) -> None:
        require_scalar(condition, "In[0] should be a scalar: {}")
        if not condition:
            parts = [
                f" [{summarize_values(np.asarray(tensor), dtype, summarize)}]"
                for tensor, dtype in zip(data, T, strict=True)
            ]
            raise InvalidArgumentError(f"assertion failed:{''.join(parts)}")

    return check


_CHECK_NUMERICS_ATTRS = ["T: {bfloat16, half, float, double}", "message: string"]

CHECK_NUMERICS = register_op(
    "CheckNumerics",
    inputs=["tensor: T"],
    outputs=["output: T"],
    attrs=_CHECK_NUMERICS_ATTRS,
    shape_fn=unchanged_shape,
    traits="debug_only clustering=assertion",
    is_stateful=True,
    doc="`tensor`; fails, with `message`, if it has a NaN or an infinity.",
)

CHECK_NUMERICS_V2 = register_op(
    "CheckNumericsV2",
    inputs=["tensor: T"],
    outputs=["output: T"],
    attrs=_CHECK_NUMERICS_ATTRS,
    shape_fn=unchanged_shape,
    traits="debug_only",
    is_stateful=True,
    doc="As CheckNumerics; the error tells positive and negative infinities apart.",
)


@register_kernel(CHECK_NUMERICS, types={"T": FLOATS}, kind="view")
def check_numerics(tensor: Any, *, message: str) -> Any:
    return _checked(tensor, message, {"Inf": np.isinf, "NaN": np.isnan})


@register_kernel(CHECK_NUMERICS_V2, types={"T": FLOATS}, kind="view")
def check_numerics_v2(tensor: Any, *, message: str) -> Any:
    return _checked(
        tensor,
        message,
        {"-Inf": lambda x: x == -np.inf, "+Inf": lambda x: x == np.inf, "NaN": np.isnan},
    )


def _checked(tensor: Any, message: str, tests: dict[str, Callable[[Any], Any]]) -> Any:
    """The tensor; if it is not finite throughout, an error that names the tests it fails."""
    if np.isfinite(tensor).all():
        return tensor
    found = [name for name, test in tests.items() if test(tensor).any()]
    names = ", ".join(found[:-1]) + "," * (len(found) > 2) + " and " * (len(found) > 1) + found[-1]
    raise InvalidArgumentError(f"{message} : Tensor had {names} values")


TO_BOOL = register_op(
    "ToBool",
    inputs=["input: T"],
    outputs=["output: bool"],
    attrs=["T: type"],
    shape_fn=scalar_shape,
    doc="Whether a scalar is not zero, a string not empty; of another tensor, if it has elements.",
)

_WITH_TRUTH = frozenset(
    {
        DataType.DT_BOOL,
        DataType.DT_STRING,
        DataType.DT_FLOAT,
        DataType.DT_DOUBLE,
        DataType.DT_INT8,
        DataType.DT_UINT8,
        DataType.DT_INT16,
        DataType.DT_INT32,
        DataType.DT_INT64,
    }
)


@register_kernel(TO_BOOL)
def to_bool(tensor: Any, *, T: DataType) -> Any:
    if tensor.ndim:
        return np.bool_(tensor.size)
    check_has_truth(T)
    return np.bool_(tensor.item())


def check_has_truth(dtype: DataType) -> None:
    """Raise InvalidArgumentError unless ToBool takes scalars of a type."""
    if dtype not in _WITH_TRUTH:
        raise InvalidArgumentError(f"{dtype.string} cannot be converted to a boolean")


def _message(op: g.Operation) -> str:
    message = op.get_attr("message").decode()
    return f"Not a number (NaN) or infinity (Inf) values detected in gradient. {message}"


@g.register_gradient("CheckNumerics")
def check_numerics_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.CheckNumerics(grad, message=_message(op))


@g.register_gradient("CheckNumericsV2")
def check_numerics_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.CheckNumericsV2(grad, message=_message(op))
