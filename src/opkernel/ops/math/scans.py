"""Scans: cumulative sums, products and log-sum-exps along an axis, and gradients.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/scan_ops.cc.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

import opkernel.gradients as g
from opkernel.device.budget import check_time
from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.graph import constant
from opkernel.kernel import KernelRegistry
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import FLOATS, INDEX, NUMBERS, register_kernel
from opkernel.types import DataType


def _declare(name: str, what: str, types: str) -> OpHandle:
    return register_op(
        f"{name}(x: T, axis: Tidx) -> out: T",
        attrs=[
            "exclusive: bool = false",
            "reverse: bool = false",
            f"T: {{{types}}}",
            "Tidx: {int32, int64} = DT_INT32",
        ],
        shape_fn=unchanged_shape,
        traits="cost=linear",
        doc=f"""{what} of the elements of `x` along `axis`, up to each of them.

exclusive: the element itself does not count.
reverse: start at the end.
""",
    )


CUMSUM = _declare("Cumsum", "The sum", "numbertype")
CUMPROD = _declare("Cumprod", "The product", "numbertype")
CUMULATIVE_LOGSUMEXP = _declare(
    "CumulativeLogsumexp",
    "The logarithm of the sum of the exponentials",
    "bfloat16, half, float, double",
)

Scan = Callable[[Any, int], Any]
"""The inclusive scan of an array along an axis, from its start."""


def scan_axis(axis: Any, rank: int) -> int:
    """The axis, counted from the front.

    Raises:
        InvalidArgumentError: it is no scalar, or out of range.
    """
    require_scalar(axis, "ScanOp: axis must be a scalar, not {}")
    index = int(axis)
    index = index + rank if index < 0 else index
    if not 0 <= index < rank:
        raise InvalidArgumentError(
            f"ScanOp: Expected scan axis in the range [{-rank}, {rank}), but got {index}"
        )
    return index


def _kernel(
    scan: Scan, start: float, exclusive: bool, reverse: bool, xp: Any
) -> Callable[[Any, Any], Any]:
    """The function of a scan op's inputs; an exclusive scan starts with `start`."""

    def scanned(x: Any, axis: Any) -> Any:
        where = scan_axis(axis, x.ndim)
        if x.size == 0:
            return x.copy()
        x = xp.flip(x, axis=where) if reverse else x
        result = scan(x, where)
        result = _shifted(result, where, start, xp) if exclusive else result
        return xp.flip(result, axis=where) if reverse else result

    return scanned


def _shifted(x: Any, axis: int, start: float, xp: Any) -> Any:
    """`x` moved on by one along an axis, with `start` put in front and the end cut off."""
    before = (slice(None),) * axis
    front = xp.full_like(x[(*before, slice(1))], start)
    return xp.concat([front, x[(*before, slice(-1))]], axis=axis)


def _register(op: OpHandle, name: Literal["cumsum", "cumprod"], start: int) -> None:
    @register_kernel(op, types={"T": NUMBERS, "Tidx": INDEX}, factory=True)
    def make(*, exclusive: bool, reverse: bool, xp: Any) -> Callable[[Any, Any], Any]:
        function = getattr(xp, name)

        def scan(x: Any, axis: int) -> Any:
            return function(x, axis=axis, dtype=x.dtype)

        return _kernel(scan, start, exclusive, reverse, xp)


_register(CUMSUM, "cumsum", 0)
_register(CUMPROD, "cumprod", 1)


def scan_log_sum_exp(x: Any, axis: int, xp: Any) -> Any:
    """The scan of CumulativeLogsumexp.

    The elements are taken one after the other, all rounded to `T`: with NaN or infinities among
    them, and in the narrow types, the order shows.
    """
    if xp is np:
        return scan_in_parts(add_exponentials, x, axis)
    total = xp.full_like(x.take(0, axis), -xp.inf)
    steps = range(x.shape[axis])
    totals = [total := log_add_exp(total, x.take(index, axis), xp) for index in steps]
    return xp.stack(totals, axis=axis)


_AT_ONCE = 1 << 20
"""About so many elements are added in one call."""


def scan_in_parts(add: Callable[[Any, Any, Any], None], x: Any, axis: int) -> Any:
    """The scan of CumulativeLogsumexp by a function as `add_exponentials`."""
    rows, columns = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    flat = np.ascontiguousarray(x).reshape(rows, x.shape[axis], columns)
    out, totals = np.empty_like(flat), np.full((rows, columns), -np.inf, x.dtype)
    step = max(_AT_ONCE // (rows * columns), 1)
    for at in range(0, flat.shape[1], step):
        check_time("adding exponentials")
        add(flat[:, at : at + step], totals, out[:, at : at + step])
    return out.reshape(x.shape)


def add_exponentials(x: Any, totals: Any, out: Any) -> None:
    """Add some steps of rows, [rows, steps, columns], to their totals, [rows, columns]."""
    if x.dtype.itemsize > 2 and (x < np.inf).all():
        out[...] = x
        out[:, 0] = log_add_exp(totals, x[:, 0], np)
        np.logaddexp.accumulate(out, axis=1, out=out)  # rounds as `log_add_exp`
    else:
        total = totals
        for i in in_time(range(x.shape[1]), array_work(total.size, 12)):
            out[:, i] = total = log_add_exp(total, x[:, i], np)
    totals[...] = out[:, -1]


@register_kernel(
    CUMULATIVE_LOGSUMEXP, types={"T": FLOATS, "Tidx": INDEX}, host_memory=["axis"], factory=True
)
def cumulative_logsumexp(*, exclusive: bool, reverse: bool, xp: Any) -> Callable[[Any, Any], Any]:
    """An exclusive scan starts with -inf."""
    return _kernel(partial(scan_log_sum_exp, xp=xp), -xp.inf, exclusive, reverse, xp)


def register_cumulative_logsumexp(
    scan: Scan, types: Sequence[DataType], registry: KernelRegistry
) -> None:
    """Register a provider's kernel of CumulativeLogsumexp."""

    def kernel(*, exclusive: bool, reverse: bool) -> Callable[[Any, Any], Any]:
        return _kernel(scan, -np.inf, exclusive, reverse, np)

    register_kernel(
        CUMULATIVE_LOGSUMEXP,
        types={"T": types, "Tidx": INDEX},
        host_memory=["axis"],
        factory=True,
        registry=registry,
    )(kernel)


def log_add_exp(a: Any, b: Any, xp: Any) -> Any:
    """log(exp(a) + exp(b)), with NaN and infinities as Eigen's std::min and std::max leave them."""
    high, low = xp.where(a < b, b, a), xp.where(b < a, b, a)
    return xp.where(high == -xp.inf, high, xp.log1p(xp.exp(low - high)) + high)


@g.register_gradient("Cumsum")
def cumsum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Cumsum(grad, op.inputs[1], **_backwards(op)), None


@g.register_gradient("Cumprod")
def cumprod_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, axis = op.inputs
    weighted = g.nodes.Mul(op.outputs[0], grad)
    return g.nodes.DivNoNan(g.nodes.Cumsum(weighted, axis, **_backwards(op)), x), None


@g.register_gradient("CumulativeLogsumexp")
def cumulative_logsumexp_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """As sums of logarithms, by themselves for gradients above and below zero."""
    x, axis = op.inputs
    lowest = constant(grad.dtype.min, grad.dtype)

    def part(is_in: g.Tensor, size: g.Tensor) -> Any:
        log = g.nodes.SelectV2(is_in, g.nodes.Log(size), lowest)
        relative = g.nodes.Sub(log, op.outputs[0])
        total = g.nodes.CumulativeLogsumexp(relative, axis, **_backwards(op))
        return g.nodes.Exp(g.nodes.AddV2(total, x))

    above = part(g.nodes.Greater(grad, 0), grad)
    below = part(g.nodes.Less(grad, 0), g.nodes.Neg(grad))
    return g.nodes.Sub(above, below), None


def _backwards(op: g.Operation) -> dict[str, bool]:
    """The attrs of the scan in the other direction."""
    return {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
