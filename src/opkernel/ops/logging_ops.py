"""Ops that check values or tell of them: Assert, CheckNumerics, ToBool, Print, PrintV2 and Timestamp.

Source: TensorFlow core/ops/logging_ops.cc, core/kernels/logging_ops.cc, core/ops/array_ops.cc,
core/ops/functional_ops.cc, core/kernels/check_numerics_op.cc, core/kernels/functional_ops.cc.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, PermissionDeniedError
from opkernel.escaping import terminal_text
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import no_outputs, scalar_shape, unchanged_shape
from opkernel.opdef.text.summary import summarize_values
from opkernel.ops.input_checks import int32_attr, require_scalar
from opkernel.ops.registration import FLOATS, SIGNED_INTEGERS, WIDE_FLOATS, register_kernel
from opkernel.types import DataType

PRINT = register_op(
    "Print(input: T, data: U) -> output: T",
    attrs=[
        "T: type",
        "U: list(type) >= 0",
        "message: string = ''",
        "first_n: int = -1",
        "summarize: int = 3",
    ],
    shape_fn=unchanged_shape,
    traits="debug_only",
    is_stateful=True,
    doc="`input`; prints `message` and `summarize` values of each of `data`, `first_n` times.",
)


@register_kernel(PRINT, kind="view", factory=True)
def print_(
    *, U: list[DataType], message: str, first_n: int, summarize: int
) -> Callable[[Any, list[Any]], Any]:
    int32_attr("summarize", summarize)
    turns = iter(range(first_n))
    lock = threading.Lock()

    def tell(tensor: Any, data: list[Any]) -> Any:
        with lock:
            is_silent = first_n >= 0 and next(turns, None) is None
        if not is_silent:
            parts = [
                f"[{summarize_values(np.asarray(item), dtype, summarize)}]"
                for item, dtype in zip(data, U, strict=True)
            ]
            _write(sys.stderr, f"{message}{''.join(parts)}\n".encode("utf-8", "surrogateescape"))
        return tensor

    return tell


def print_v2_shape(c: InferenceContext) -> None:
    """No outputs; the input is a scalar."""
    if c.rank_known(c.input(0)) and c.rank(c.input(0)) != 0:
        raise InvalidArgumentError(f"input must be a scalar, but has rank: {c.rank(c.input(0))}")


PRINT_V2 = register_op(
    "PrintV2(input: string)",
    attrs=["output_stream: string = 'stderr'", "end: string = '\\n'"],
    shape_fn=print_v2_shape,
    traits="debug_only",
    is_stateful=True,
    doc="Prints a string, and `end`, to `output_stream`.",
)

_logger = logging.getLogger("opkernel")

_STREAMS: dict[str, Callable[[bytes], None]] = {
    "stdout": lambda text: _write(sys.stdout, text),
    "stderr": lambda text: _write(sys.stderr, text),
    "log(info)": lambda text: _logger.info("%s", _shown(text)),
    "log(warning)": lambda text: _logger.warning("%s", _shown(text)),
    "log(error)": lambda text: _logger.error("%s", _shown(text)),
}


@register_kernel(PRINT_V2, factory=True)
def print_v2(*, output_stream: str, end: str) -> Callable[[Any], None]:
    if output_stream.startswith("file://"):
        raise PermissionDeniedError(
            f"PrintV2 would write to {output_stream!r}; graphs may not write to files"
        )
    write, last = _STREAMS.get(output_stream), end.encode("utf-8", "surrogateescape")
    if write is None:
        raise InvalidArgumentError(
            f"Unknown output stream: {output_stream}, Valid streams are: {' '.join(_STREAMS)}"
        )

    def tell(text: Any) -> None:
        require_scalar(text, "Input is expected to be scalar, but got {}")
        write(text.item() + last)

    return tell


def _write(stream: Any, text: bytes) -> None:
    """Write a text with its invalid bytes replaced; to a terminal, without what could steer it."""
    plain = _shown(text) if stream.isatty() else text.decode("utf-8", "backslashreplace")
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(plain.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _shown(text: bytes) -> str:
    """The text for terminals and logs, which models must not steer."""
    return terminal_text(text.decode("utf-8", "backslashreplace"), keep="\n\t")


TIMESTAMP = register_op(
    "Timestamp() -> ts: double",
    shape_fn=scalar_shape,
    is_stateful=True,
    doc="The seconds since the epoch, at the time that the op runs.",
)


@register_kernel(TIMESTAMP)
def timestamp() -> Any:
    return np.float64(time.time())


@g.register_gradient("Print")
def print_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    return [grad, *[None] * (len(op.inputs) - 1)]


ASSERT = register_op(
    "Assert(condition: bool, data: T)",
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
    "CheckNumerics(tensor: T) -> output: T",
    attrs=_CHECK_NUMERICS_ATTRS,
    shape_fn=unchanged_shape,
    traits="debug_only clustering=assertion",
    is_stateful=True,
    doc="`tensor`; fails, with `message`, if it has a NaN or an infinity.",
)

CHECK_NUMERICS_V2 = register_op(
    "CheckNumericsV2(tensor: T) -> output: T",
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
    "ToBool(input: T) -> output: bool",
    attrs=["T: type"],
    shape_fn=scalar_shape,
    doc="Whether a scalar is not zero, a string not empty; of another tensor, if it has elements.",
)

_WITH_TRUTH = frozenset(
    (*SIGNED_INTEGERS, *WIDE_FLOATS, DataType.DT_UINT8, DataType.DT_BOOL, DataType.DT_STRING)
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
