"""MapDefun. Expected values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.types import DataType, PartialTensorShape

ANY, SCALAR = PartialTensorShape(None), PartialTensorShape([])
INT32, STRING = DataType.DT_INT32, DataType.DT_STRING


ROWS = np.array([[1, 2], [3, 4], [5, 6]], np.int32)
TEXTS = np.array([b"a", b"b"], object)
NO_ROWS = np.zeros((0, 2), np.int32)


def mapped(
    function: Any,
    arguments: list[Any],
    shape: PartialTensorShape = ANY,
    captured: Any = (),
    dtype: DataType = INT32,
) -> Any:
    """The results of a function for the rows of arguments, in a session; shapes are known to kernels only."""
    with opkernel.Graph().as_default() as graph:
        values = [opkernel.constant(one) for one in [*arguments, *captured]]
        fed = [opkernel.placeholder(one.dtype, None) for one in values]
        specs = [opkernel.TensorSpec(None, one.dtype) for one in values]
        body = opkernel.function(function).get_concrete_function(*specs).graph
        body.add_to(graph)
        (output,) = raw_ops.MapDefun(
            arguments=fed[: len(arguments)],
            captured_inputs=fed[len(arguments) :],
            output_types=[dtype],
            output_shapes=[shape],
            f=body.reference.func,
        )
    feeds = dict(zip(fed, [*arguments, *captured], strict=True))
    return opkernel.Session(graph).run(output, feeds).tolist()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: mapped(lambda x: x * x, [ROWS]), (ROWS * ROWS).tolist()),
        (lambda: mapped(opkernel.reduce_sum, [ROWS], SCALAR), [3, 7, 11]),
        (lambda: mapped(lambda x, y: x + y, [ROWS, ROWS[:, 0]]), [[2, 3], [6, 7], [10, 11]]),
        (lambda: mapped(lambda x, y: y, [ROWS], captured=[ROWS[0]]), [[1, 2]] * 3),
        (
            lambda: mapped(
                lambda x, y: raw_ops.StringJoin(inputs=[x, y]), [TEXTS], SCALAR, [TEXTS[1]], STRING
            ),
            [b"ab", b"bb"],
        ),
        (lambda: mapped(lambda x: x, [NO_ROWS], PartialTensorShape([2])), []),
    ],
)
def test_the_function_gets_each_row(call: Any, expected: Any) -> None:
    assert call() == expected


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: mapped(lambda x: opkernel.range(x), [np.array([1, 2], np.int32)]),
            InvalidArgumentError,
            r"retval shape, \[2\], and expected output shape, \[1\]",
        ),
        (lambda: mapped(lambda x: x, [ROWS], SCALAR), InvalidArgumentError, "expected output"),
        (
            lambda: mapped(lambda x: x, [ROWS], dtype=STRING),
            InvalidArgumentError,
            "expected output type for output: 0",
        ),
        (lambda: mapped(lambda x: (x, x), [ROWS]), InvalidArgumentError, "number of function"),
        (
            lambda: mapped(lambda x: x, [np.int32(1)]),
            InvalidArgumentError,
            "Input 0 has a rank of 0",
        ),
        (
            lambda: mapped(lambda x, y: x, [ROWS, ROWS[1:]]),
            InvalidArgumentError,
            "Input 1 has leading dimension 2",
        ),
        (lambda: mapped(lambda x: x, [NO_ROWS]), InternalError, "Missing 0-th output"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
