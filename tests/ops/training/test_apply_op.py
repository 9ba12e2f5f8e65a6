"""Steps of optimisers: values over several runs, locks, TensorFlow's errors. Values are TensorFlow's."""

import itertools
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from opkernel.types import PartialTensorShape, as_dtype

_names = itertools.count()


def floats(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def variable(*values: Any, dtype: Any = np.float32) -> Any:
    handle = raw_ops.VarHandleOp(
        dtype=as_dtype(dtype),
        shape=PartialTensorShape(),
        shared_name=f"test_apply_op_{next(_names)}",
    )
    if values:
        raw_ops.AssignVariableOp(resource=handle, value=np.array(values, dtype))
    return handle


def read(*handles: Any) -> list[Any]:
    return [raw_ops.ReadVariableOp(resource=h, dtype=as_dtype(np.float32)) for h in handles]


def assert_values(handles: list[Any], expected: list[Any]) -> None:
    for actual, wanted in zip(read(*handles), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-6)


def test_momentum_of_nesterov_over_two_steps() -> None:
    var, accum = variable(1, -2), variable(0.5, 0)
    for _ in range(2):
        raw_ops.ResourceApplyMomentum(
            var=var, accum=accum, lr=0.1, grad=floats(1, 2), momentum=0.9, use_nesterov=True
        )
    assert_values([var, accum], [[0.46204999, -2.92200017], [2.30500007, 3.79999995]])


def test_adam_over_two_steps() -> None:
    var, m, v = variable(1, -2), variable(0, 0), variable(0, 0)
    rates = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}
    for powers, grad in (((0.9, 0.999), (0.5, -3)), ((0.81, 0.998001), (-0.5, 1))):
        raw_ops.ResourceApplyAdam(
            var=var,
            m=m,
            v=v,
            beta1_power=powers[0],
            beta2_power=powers[1],
            grad=floats(*grad),
            **rates,
        )
    assert_values(
        [var, m, v],
        [[0.99052638, -1.9859978], [-0.005, -0.17000003], [0.00049974356, 0.0099908719]],
    )


def test_large_variables_step_as_small_ones_do() -> None:
    count = 150_001
    var, accum = variable(*[1, -2] * count), variable(*[0.5, 0] * count)
    for _ in range(2):
        raw_ops.ResourceApplyMomentum(
            var=var,
            accum=accum,
            lr=0.1,
            grad=floats(*[1, 2] * count),
            momentum=0.9,
            use_nesterov=True,
        )
    assert_values(
        [var, accum], [[0.46204999, -2.92200017] * count, [2.30500007, 3.79999995] * count]
    )


def test_ftrl_sets_what_is_small_to_zero() -> None:
    var, accum, linear = variable(0.3, -0.2, 0.05), variable(0.1, 0.2, 0.3), variable(0, 0.4, -0.01)
    raw_ops.ResourceApplyFtrl(
        var=var,
        accum=accum,
        linear=linear,
        grad=floats(1, -2, 0.01),
        lr=0.5,
        l1=0.2,
        l2=0.1,
        lr_power=-0.5,
    )
    assert_values(
        [var, accum, linear],
        [[-0.1568805, 0.17659184, 0], [1.1, 4.2, 0.3001], [0.5604514, -0.9591295, -9.125099e-06]],
    )


def test_a_row_whose_index_comes_twice_goes_through_two_steps() -> None:
    var, accum = variable([1, 2], [3, 4], [5, 6]), variable([0.1, 0.1], [0.1, 0.1], [0.1, 0.1])
    raw_ops.ResourceSparseApplyAdagrad(
        var=var,
        accum=accum,
        lr=0.5,
        grad=floats([1, 1], [2, 2], [3, 0]),
        indices=np.array([2, 0, 2], np.int32),
    )
    assert_values(
        [var, accum],
        [
            [[0.50613523, 1.50613523], [3, 4], [4.05128098, 5.5232687]],
            [[4.1, 4.1], [0.1, 0.1], [10.1, 1.1]],
        ],
    )


def test_who_has_read_a_variable_keeps_what_it_was() -> None:
    var = variable(1, 2)
    (before,) = read(var)
    raw_ops.ResourceApplyGradientDescent(var=var, alpha=1.0, delta=floats(1, 1))
    assert before.tolist() == [1, 2]
    assert read(var)[0].tolist() == [0, 1]


def test_one_variable_may_be_its_own_slot() -> None:
    var = variable(1)
    raw_ops.ResourceApplyMomentum(var=var, accum=var, lr=1.0, grad=floats(1), momentum=0.5)
    assert read(var)[0].tolist() == [1.5]


def test_a_step_passes_the_reference_on() -> None:
    with Graph().as_default() as graph:
        var = raw_ops.VariableV2(shape=PartialTensorShape([2]), dtype=as_dtype(np.float32))
        start = raw_ops.Assign(ref=var, value=floats(1, 2))
        after = raw_ops.ApplyGradientDescent(var=var, alpha=0.5, delta=floats(2, 2))
    with Session(graph) as session:
        with pytest.raises(FailedPreconditionError, match="uninitialized value VariableV2"):
            session.run(after)
        session.run(start)
        assert session.run(after).tolist() == [0, 1]
        assert session.run(var).tolist() == [0, 1]


MOMENTUM = {"lr": 0.1, "grad": floats(1, 2), "momentum": 0.9}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lr": floats(1)}, r"lr is not a scalar: \[1\]"),
        ({"momentum": floats(1, 2)}, r"momentum is not a scalar: \[2\]"),
        ({"grad": floats(1)}, r"var and grad do not have the same shape\[2\] \[1\]"),
    ],
)
def test_inputs_that_do_not_fit(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ResourceApplyMomentum(
            var=variable(1, 2), accum=variable(1, 2), **(MOMENTUM | changed)
        )


def test_slots_that_do_not_fit() -> None:
    with pytest.raises(InvalidArgumentError, match="var and accum do not have the same shape"):
        raw_ops.ResourceApplyMomentum(var=variable(1, 2), accum=variable(1), **MOMENTUM)
    with pytest.raises(InvalidArgumentError, match="accum is a variable of double"):
        raw_ops.ResourceApplyMomentum(
            var=variable(1, 2), accum=variable(1, 2, dtype=np.float64), **MOMENTUM
        )
    with pytest.raises(InternalError, match="Invalid variable reference"):
        raw_ops.ResourceApplyMomentum(var=variable(1, 2), accum=variable(), **MOMENTUM)


@pytest.mark.parametrize(
    ("grad", "indices", "message"),
    [
        (floats([1]), [2], "Index 2 at offset 0 in indices is out of range"),
        (floats([1], [2]), [0, -1], "Index -1 at offset 1 in indices is out of range"),
        (floats([1]), [[0]], "indices must be one-dimensional"),
        (floats([1], [2]), [0], "grad must be the same size as indices in the first dimension"),
        (floats([1, 2]), [0], "var and grad must match in dimension 1"),
        (floats(1), [0], "as many dimensions"),
    ],
)
def test_rows_that_do_not_fit(grad: Any, indices: Any, message: str) -> None:
    var = variable([1], [2])
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ResourceSparseApplyMomentum(
            var=var,
            accum=variable([1], [2]),
            lr=0.1,
            grad=grad,
            indices=np.array(indices, np.int32),
            momentum=0.9,
        )
    assert read(var)[0].tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lr": 0.0}, "lr is not a positive scalar"),
        ({"l1": -1.0}, "l1 regularization strength is not a non-negative scalar"),
        ({"lr_power": 0.5}, "lr_power is not a non-positive scalar"),
    ],
)
def test_scalars_out_of_bounds(changed: dict[str, Any], message: str) -> None:
    scalars = {"lr": 1.0, "l1": 0.0, "l2": 0.0, "lr_power": -0.5}
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.ResourceSparseApplyFtrl(
            var=variable([1]),
            accum=variable([1]),
            linear=variable([1]),
            grad=floats([1]),
            indices=np.array([0], np.int32),
            **(scalars | changed),
        )


def test_rows_without_elements() -> None:
    empty = {"grad": np.zeros((1, 0), np.float32), "indices": np.array([0], np.int32), "lr": 1.0}
    with pytest.raises(InvalidArgumentError, match="Inner dimension should be greater than zero"):
        raw_ops.ResourceSparseApplyAdagrad(var=variable([], []), accum=variable([], []), **empty)
    raw_ops.ResourceSparseApplyMomentum(
        var=variable([], []), accum=variable([], []), momentum=0.5, **empty
    )
