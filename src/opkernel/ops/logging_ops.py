"""Ops that tell something: Print, PrintV2, Timestamp.

Source: TensorFlow core/ops/logging_ops.cc, core/kernels/logging_ops.cc.
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
from opkernel.opdef.common_shapes import scalar_shape, unchanged_shape
from opkernel.opdef.text.tensor_summary import summarize_values
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

PRINT = register_op(
    "Print",
    inputs=["input: T", "data: U"],
    outputs=["output: T"],
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
    turns = iter(range(int32_attr("first_n", first_n)))
    lock = threading.Lock()

    def is_silent() -> bool:
        with lock:
            return first_n >= 0 and next(turns, None) is None

    def tell(tensor: Any, data: list[Any]) -> Any:
        if not is_silent():
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
    "PrintV2",
    inputs=["input: string"],
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
    "Timestamp",
    outputs=["ts: double"],
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
