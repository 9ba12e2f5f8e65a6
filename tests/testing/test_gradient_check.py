"""Gradients against finite differences: wrong ones are found on drawn calls, right ones pass."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.gradients import (
    no_gradient,
    nodes,
    register_gradient,
    sum_to_operands,
)
from opkernel.kernel import global_kernel_registry
from opkernel.opdef import scalar_shape, unchanged_shape
from opkernel.opdef.common_shapes import broadcast_binary_op_shape
from opkernel.registrations import registered_by
from opkernel.testing import (
    CheckFailure,
    check_gradient,
    check_op,
    check_saved_call,
    examine_op,
    save_failure,
)

NUMBERS = itertools.count()
UNARY = {"inputs": ["x: T"], "outputs": ["y: T"], "shape_fn": unchanged_shape}
BINARY = {
    "inputs": ["a: T", "b: T"],
    "outputs": ["y: T"],
    "shape_fn": broadcast_binary_op_shape,
}


@pytest.fixture(autouse=True)
def _no_traces():
    yield
    kernels = global_kernel_registry()
    for registration in kernels.registrations():
        if registration.owner == __name__:
            kernels.unregister(registration)
    for registrations, name in registered_by(__name__.__eq__):
        registrations.remove(name)


def op_with(kernel: Callable[..., Any], gradient: Any = None, **declared: Any) -> str:
    """The name of an op of its own with a kernel and a gradient function."""
    attrs = {"attrs": ["T: {float, double}"]} | declared
    op = opkernel.register_op(f"GradientCheck{next(NUMBERS)}", **attrs)
    opkernel.register_kernel(op, device="CPU")(kernel)
    if gradient is not None:
        register_gradient(op)(gradient)
    return op.name


def failure_of(name: str, calls: int = 30) -> str:
    failure = examine_op(name, max_examples=calls).failure
    assert failure is not None, name
    return str(failure)


def cube(x):
    return x * x * x


def cube_by(factor: Any) -> Any:
    return lambda op, grad: nodes.Mul(nodes.Mul(grad, factor), nodes.Square(op.inputs[0]))


def only_of_known_shapes(op, grad):
    return cube_by(3 if op.inputs[0].shape.rank is not None else 4)(op, grad)


def wrong_beyond_two(op, grad):
    (x,) = op.inputs
    factor = nodes.SelectV2(nodes.Greater(x, nodes.Cast(2.0, DstT=x.dtype)), 1, 3)
    return nodes.Mul(cube_by(1)(op, grad), nodes.Cast(factor, DstT=x.dtype))


def not_for_scalars(op, grad):
    if op.inputs[0].shape.rank == 0:
        raise KeyError("axis")
    return cube_by(3)(op, grad)


WRONG_OF_ONE = {
    "seventy-seven times it": (cube_by(77 * 3), "is 231|is -?[0-9.]+, finite differences of 1e-06"),
    "its negative": (cube_by(-3), "finite differences of 1e-06 give"),
    "without the incoming gradient": (
        lambda op, grad: nodes.Mul(3, nodes.Square(op.inputs[0])),
        "finite differences of 1e-06 give",
    ),
    "that of something else": (lambda op, grad: grad, "finite differences of 1e-06 give"),
    "wrong for some values": (wrong_beyond_two, "finite differences of 1e-06 give"),
    "wrong where shapes are unknown": (only_of_known_shapes, r"\(shapes unknown\)"),
    "NaN": (
        lambda op, grad: nodes.Mul(grad, nodes.Log(nodes.Neg(nodes.Square(op.inputs[0])))),
        "is nan, finite differences",
    ),
    "none": (lambda op, grad: None, "is None, finite differences"),
    "of a scalar": (
        lambda op, grad: nodes.Sum(cube_by(3)(op, grad), nodes.Range(0, nodes.Rank(grad), 1)),
        r"The gradient of shape \[\] for the input 'x:0' .* does not have the shape of the input",
    ),
    "of another rank": (
        lambda op, grad: nodes.ExpandDims(cube_by(3)(op, grad), 0),
        "The gradient of shape .* does not have the shape of the input",
    ),
    "of float for double": (
        lambda op, grad: nodes.Cast(cube_by(3)(op, grad), DstT=opkernel.float32),
        "is of type float, the input double",
    ),
    "two for one input": (
        lambda op, grad: (grad, grad),
        "fails with INVALID_ARGUMENT: the gradient function of .* gave 2 gradients for the 1 inputs",
    ),
    "no tensor": (lambda op, grad: 3.0, "raises TypeError: .* gave a float; gradients are tensors"),
    "an exception": (lambda op, grad: 1 / 0, "raises ZeroDivisionError: division by zero"),
    "an exception for scalars": (not_for_scalars, "function not_for_scalars raises KeyError"),
    "an OpError": (
        lambda op, grad: nodes.Reshape(grad, [7, -1, -1]),
        "fails with INVALID_ARGUMENT",
    ),
    "nodes that fail": (
        lambda op, grad: nodes.Gather(nodes.Reshape(cube_by(3)(op, grad), [-1]), 1 << 20),
        "what the gradient function adds fails with INVALID_ARGUMENT|does not have the shape",
    ),
}


@pytest.mark.parametrize("what", WRONG_OF_ONE)
def test_a_wrong_gradient_of_one_input(what):
    gradient, expected = WRONG_OF_ONE[what]
    name = op_with(cube, gradient, **UNARY)
    found = failure_of(name)
    assert re.search(expected, found), found
    assert "gradient" in found.splitlines()[0]
    assert found.splitlines()[1] == name  # and then the point
    assert found.splitlines()[2].startswith("  x: double[")


def test_what_a_failure_tells():
    name = op_with(cube, cube_by(77 * 3), **UNARY)
    with pytest.raises(CheckFailure) as caught:
        check_op(name)
    value = float(caught.value.call.inputs[0])  # the smallest is a scalar
    what, *point = str(caught.value).splitlines()
    assert what.startswith("the gradient of input 0 ('x') is ")
    analytic = float(what.split(" is ")[1].split(",")[0])
    numeric = float(what.split(" give ")[1].split(" ")[0])
    assert analytic == pytest.approx(77 * numeric, rel=1e-4)
    assert abs(numeric) == pytest.approx(3 * value**2, rel=0.6)  # times a weight of 0.5 to 1.5
    assert point[:2] == [name, f"  x: double[] = {value}"]


def by_both(op: Any, grad: Any) -> tuple[Any, Any]:
    a, b = op.inputs
    return nodes.Mul(grad, nodes.Square(b)), nodes.Mul(nodes.Mul(grad, 2), nodes.Mul(a, b))


def reduced(op: Any, grad: Any) -> Any:
    return summed(op, by_both(op, grad))


def summed(op: Any, grads: Any) -> Any:
    (a, b), (by_a, by_b) = op.inputs, grads
    return sum_to_operands(a, b, by_a, by_b)


WRONG_OF_TWO = {
    "swapped": lambda op, grad: summed(op, by_both(op, grad)[::-1]),
    "not reduced": by_both,
    "reduced for one": lambda op, grad: (reduced(op, grad)[0], by_both(op, grad)[1]),
    "none for the second": lambda op, grad: (reduced(op, grad)[0], None),
    "none for the first": lambda op, grad: (None, reduced(op, grad)[1]),
    "one for two": lambda op, grad: reduced(op, grad)[:1],
    "averaged": lambda op, grad: [nodes.Mul(g, 0.5) for g in reduced(op, grad)],
}


@pytest.mark.parametrize("what", WRONG_OF_TWO)
def test_a_wrong_gradient_of_operands_that_are_broadcast(what):
    name = op_with(lambda a, b: a * b * b, WRONG_OF_TWO[what], **BINARY)
    found = failure_of(name)
    assert "gradient" in found.splitlines()[0]
    assert any(f"('{i}')" in found or f"'{i}:0'" in found or "1 gradients" in found for i in "ab")


def test_all_outputs_count():
    def both(x):
        return x * x, x + x

    two = {"inputs": ["x: T"], "outputs": ["square: T", "double: T"]}

    def shapes(c):
        c.set_output(0, c.input(0))
        c.set_output(1, c.input(0))

    def right(op, by_square, by_double):
        first = nodes.Mul(nodes.Mul(by_square, 2), op.inputs[0])
        return nodes.AddV2(first, nodes.Mul(by_double, 2))

    def without_the_second(op, by_square, by_double):
        return nodes.Mul(nodes.Mul(by_square, 2), op.inputs[0])

    assert check_op(op_with(both, right, shape_fn=shapes, **two), max_examples=25).gradients == 5
    assert "finite differences" in failure_of(
        op_with(both, without_the_second, shape_fn=shapes, **two)
    )


def test_lists_and_attrs():
    declared = {
        "inputs": ["xs: N * T"],
        "outputs": ["y: T"],
        "attrs": ["N: int >= 1", "T: {float, double}", "scale: int = 1"],
        "shape_fn": scalar_shape,
    }

    def kernel(xs, *, scale):
        total = sum((i + scale) * np.sum(x) for i, x in enumerate(xs))
        return np.asarray(total, xs[0].dtype)[()]

    def gradient(wrong):
        def by_inputs(op, grad):
            scale = 1 if wrong == "attr" else op.get_attr("scale")
            factors = [i + scale for i in range(len(op.inputs))]
            if wrong == "order":
                factors.reverse()
            return [
                nodes.Mul(nodes.Mul(nodes.OnesLike(x), factor), grad)
                for x, factor in zip(op.inputs, factors, strict=True)
            ]

        return by_inputs

    assert check_op(op_with(kernel, gradient(""), **declared), max_examples=25).gradients == 5
    for wrong in ("attr", "order"):
        assert "('xs_" in failure_of(op_with(kernel, gradient(wrong), **declared))


def test_complex_gradients_are_those_of_the_conjugate():
    declared = UNARY | {"attrs": ["T: {complex64, complex128}"]}

    def without_conj(op, grad):
        return nodes.Mul(nodes.Mul(grad, 2), op.inputs[0])

    def right(op, grad):
        return nodes.Mul(nodes.Mul(grad, 2), nodes.Conj(op.inputs[0]))

    assert check_op(op_with(np.square, right, **declared), max_examples=25).gradients == 5
    found = failure_of(op_with(np.square, without_conj, **declared))
    assert "x: complex128[] = " in found


def test_an_op_of_float_alone_is_compared_with_less_precision():
    declared = UNARY | {"attrs": ["T: {half, float}"]}
    assert check_op(op_with(cube, cube_by(3), **declared), max_examples=50).gradients == 10
    assert "x: float[] = " in failure_of(op_with(cube, cube_by(3.3), **declared))


def test_a_gradient_that_is_right_for_one_type_alone():
    def of_double(op, grad):
        return nodes.Mul(
            grad, nodes.Mul(opkernel.constant(np.array(3.0)), nodes.Square(op.inputs[0]))
        )

    found = failure_of(op_with(cube, of_double, **UNARY), calls=100)
    assert "function of_double" in found
    assert "x: float[] = " in found


def test_an_op_of_half_alone():
    declared = UNARY | {"attrs": ["T: {half}"]}
    assert check_op(op_with(cube, cube_by(3), **declared), max_examples=50).gradients == 10
    assert "x: half[] = " in failure_of(op_with(cube, cube_by(77 * 3), **declared))


def test_right_gradients_pass():
    assert check_op(op_with(cube, cube_by(3), **UNARY)).gradients == 20
    report = check_op(op_with(lambda a, b: a * b * b, reduced, **BINARY))
    assert (report.gradients, report.gradient_skipped) == (20, "")


KINKS: dict[str, tuple[Any, Any]] = {
    "Relu": (
        lambda x: np.maximum(x, 0),
        lambda op, grad: nodes.SelectV2(
            nodes.Greater(op.inputs[0], 0), grad, nodes.ZerosLike(grad)
        ),
    ),
    "a floor": (np.floor, lambda op, grad: None),
    "stairs": (
        lambda x: np.floor(np.asarray(16, x.dtype) * x),
        lambda op, grad: nodes.ZerosLike(grad),
    ),
    "not defined everywhere": (
        lambda x: np.sqrt(x * x * x),
        lambda op, grad: nodes.Mul(nodes.Mul(grad, 1.5), nodes.Sqrt(op.inputs[0])),
    ),
    "steep": (
        np.reciprocal,
        lambda op, grad: nodes.Mul(grad, nodes.Neg(nodes.Square(op.outputs[0]))),
    ),
}


@pytest.mark.parametrize("what", KINKS)
def test_where_there_is_no_derivative_there_is_no_alarm(what):
    kernel, gradient = KINKS[what]
    assert check_op(op_with(kernel, gradient, **UNARY)).failure is None


@pytest.mark.parametrize("what", KINKS)
def test_beside_kinks_what_is_wrong_is_found(what):
    kernel, gradient = KINKS[what]

    def wrong(op, grad):
        found = gradient(op, grad)
        return grad if found is None else nodes.AddV2(found, grad)

    assert "finite differences" in failure_of(op_with(kernel, wrong, **UNARY))


def no_derivative(op, grad):
    raise UnimplementedError("no gradient for this one")


def refusing(x):
    if x.ndim > 1:
        raise InvalidArgumentError("vectors only")
    return x * x * x


def test_what_is_refused_or_not_implemented_is_no_fault():
    assert check_op(op_with(refusing, cube_by(3), **UNARY)).gradients > 5
    skipped = check_op(op_with(cube, no_derivative, **UNARY)).gradient_skipped
    assert skipped == (
        "it could be compared at no drawn call, the first with UNIMPLEMENTED: no gradient for this one"
    )


def test_ops_without_gradient_tell_why():
    none, said, stateful, integers, unlike = (
        op_with(cube, **UNARY),
        op_with(cube, **UNARY),
        op_with(cube, cube_by(3), is_stateful=True, **UNARY),
        op_with(cube, cube_by(3), **UNARY | {"attrs": ["T: {int32}"]}),
        op_with(np.rint, **UNARY),
    )
    no_gradient(said)
    register_gradient(unlike, not_derivative="it passes the rounding unchanged")(
        lambda op, grad: grad
    )
    assert {name: check_op(name, max_examples=20).gradient_skipped for name in
            (none, said, stateful, integers, unlike)} == {
        none: "none is registered",
        said: "no_gradient says that there is none",
        stateful: "the op is stateful",
        integers: "it could be compared at no drawn call",
        unlike: "it passes the rounding unchanged",
    }  # fmt: skip


def test_gradients_are_compared_where_kernels_are_right_alone():
    name = op_with(lambda x: x.astype(np.float32)[:1], cube_by(77), **UNARY)
    assert "kernel" in failure_of(name)


def test_a_saved_failure_fails_until_the_gradient_is_right(tmp_path):
    name = op_with(cube, cube_by(77), **UNARY)
    failure = examine_op(name).failure
    assert failure is not None
    saved, _ = save_failure(failure, tmp_path)
    with pytest.raises(CheckFailure, match="finite differences"):
        check_saved_call(saved)
    register_gradient(name)(cube_by(3))
    check_saved_call(saved)


def test_check_gradient_at_points_of_ones_own():
    name = op_with(cube, cube_by(3), **UNARY)
    check_gradient(name, [np.array([0.5, -1.5])])
    check_gradient(name, [np.array([0.5, -1.5], np.float32)])
    register_gradient(name)(cube_by(3.2))
    for dtype in (np.float64, np.float32):
        with pytest.raises(AssertionError, match=r"input 0 \('x'\) at \[0\] is .*finite differ"):
            check_gradient(name, [np.array([0.5, -1.5], dtype)])
    with pytest.raises(NotFoundError, match="No gradient defined"):
        check_gradient(op_with(cube, **UNARY), [np.array(1.0)])
