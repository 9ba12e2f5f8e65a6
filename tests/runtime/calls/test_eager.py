"""Eager calls: what a cached kernel must not outlive."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import unknown_shape


def declare(kernel: Callable[..., Any], inputs: list[str]) -> None:
    """Declare the op and its kernel, as a notebook's cell does each time it is run."""
    op = opkernel.register_op(
        "EagerTestOp", inputs=inputs, outputs=["y: float"], shape_fn=unknown_shape
    )
    opkernel.register_kernel(op, device="CPU")(kernel)


def test_an_op_and_its_kernel_may_be_declared_anew() -> None:
    declare(lambda x: x + 1, ["x: float"])
    assert raw_ops.EagerTestOp(x=1.0) == 2
    declare(lambda x: x + 2, ["x: float"])
    assert raw_ops.EagerTestOp(x=1.0) == 3
    declare(lambda a, b: a * b, ["a: float", "b: float"])
    assert raw_ops.EagerTestOp(a=3.0, b=4.0) == 12


def counting(attrs: list[str]) -> Any:
    """The kernel of an op with state that has these attrs: it tells how often it was made."""

    class Counts(OpKernel):
        made = 0

        def __init__(self, construction: OpKernelConstruction) -> None:
            super().__init__(construction)
            Counts.made += 1
            time.sleep(0.05)  # others may ask for a kernel meanwhile

        def compute(self, ctx: OpKernelContext) -> None:
            ctx.set_output(0, np.float32(Counts.made))

    op = opkernel.register_op(
        "EagerTestState",
        attrs=attrs,
        outputs=["y: float"],
        shape_fn=unknown_shape,
        is_stateful=True,
    )
    opkernel.register_kernel(op, device="CPU")(Counts)
    return Counts


@pytest.mark.parametrize(
    ("attr", "values"), [("a: list(int)", [[1], [2]]), ("a: tensor", [np.ones(1), np.ones(2)])]
)
def test_kernels_with_state_are_made_once_for_each_value_of_an_attr(
    attr: str, values: list[Any]
) -> None:
    """Whoever calls first: what has no name of its own lives in the kernel."""
    kernel = counting([attr])
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda value: raw_ops.EagerTestState(a=value), values * 3))
    assert kernel.made == 2
    other = counting([attr])
    assert raw_ops.EagerTestState(a=values[0]) == 1
    assert (kernel.made, other.made) == (2, 1)


def test_types_follow_from_the_arrays() -> None:
    assert raw_ops.AddV2(x=np.float64(1), y=2).dtype == np.float64
    assert raw_ops.AddV2(x=1, y=2).dtype == np.int32
    with pytest.raises(InvalidArgumentError, match="'y' was expected to be a float tensor"):
        raw_ops.AddV2(x=np.float32(1), y=np.float64(1))


def test_arguments_are_those_of_the_op() -> None:
    execute = opkernel.runtime.execute
    with pytest.raises(InvalidArgumentError, match="AddV2 is missing its argument 'y'"):
        execute("AddV2", {"x": 1}, {})
    with pytest.raises(InvalidArgumentError, match="unexpected argument 'z'"):
        execute("AddV2", {"x": 1, "y": 2, "z": 3}, {})


def test_errors_name_the_op_and_what_it_was_given() -> None:
    with pytest.raises(InvalidArgumentError, match=r"inputs float32\[2\], float32\[3\]"):
        raw_ops.AddV2(x=np.ones(2, np.float32), y=np.ones(3, np.float32))


def test_every_op_of_the_catalogue_is_listed_before_it_is_loaded() -> None:
    assert {"MatMul", "Conv2D"} <= set(dir(raw_ops))
    with pytest.raises(AttributeError, match="no op 'NoSuchOp'"):
        raw_ops.NoSuchOp  # noqa: B018  # the attribute is what is tested


def test_an_op_without_a_kernel() -> None:
    opkernel.register_op("EagerTestBare", outputs=["y: float"], shape_fn=unknown_shape)
    with pytest.raises(NotFoundError, match="No registered 'EagerTestBare' OpKernel for CPU"):
        raw_ops.EagerTestBare()


@pytest.mark.parametrize("op", ["AddV2", "BitwiseAnd", "Less", "Div", "Maximum"])
def test_operands_that_do_not_fit_are_told_as_tensorflow_does(op: str) -> None:
    x, y = np.ones((2, 3), np.int32), np.ones((4, 1, 2), np.int32)
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs. \[4,1,2\]"):
        getattr(raw_ops, op)(x=x, y=y)


def test_negative_powers_of_integers_are_told_as_tensorflow_does() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^Pow: Integers to negative integer powers"):
        raw_ops.Pow(x=np.arange(3), y=np.arange(3) - 1)


@pytest.mark.parametrize("value", [10**12, 5, None, 1.5])
def test_only_bytes_and_text_are_strings(value: Any) -> None:
    array = np.array([value], object)
    with pytest.raises(InvalidArgumentError, match="expected bytes or text, got"):
        opkernel.runtime.execute("Identity", {"input": array}, {"T": opkernel.string})


@pytest.mark.filterwarnings("error")
def test_attrs_out_of_range_warn_of_nothing() -> None:
    result = raw_ops.LeakyReluGrad(gradients=np.float16(1), features=np.float16(-1), alpha=3e38)
    assert result == np.inf


def test_text_in_an_array_of_objects_is_encoded() -> None:
    text = np.array(["é", b"e"], object)
    assert raw_ops.StringLength(input=text).tolist() == [2, 1]
    assert raw_ops.StringLength(input=[]).tolist() == []
