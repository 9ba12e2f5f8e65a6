"""Accumulators of gradients; expected values and errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest
from tests.ops.data_flow.waiting_steps import WAIT_S, started

from opkernel import Graph, RunOptions, Session, raw_ops
from opkernel.errors import DeadlineExceededError, InvalidArgumentError
from opkernel.types import DataType, PartialTensorShape, float16, float32, float64, int32, int64


class Accumulator:
    """An accumulator in a graph, and steps of a session on it."""

    def __init__(self, prefix: str, shape: Any, dtype: DataType = float32, **attrs: Any) -> None:
        self.is_sparse = prefix == "Sparse"
        with Graph().as_default() as graph:
            handle = getattr(raw_ops, f"{prefix}ConditionalAccumulator")(
                dtype=dtype, shape=PartialTensorShape(shape), **attrs
            )
            self.step, self.n = raw_ops.Placeholder(dtype=int64), raw_ops.Placeholder(dtype=int32)
            self.gradient = raw_ops.Placeholder(dtype=dtype)
            self.indices, self.shape = (raw_ops.Placeholder(dtype=int64) for _ in "is")
            self._apply = self._apply_op(prefix, handle)
            self._take = getattr(raw_ops, f"{prefix}AccumulatorTakeGradient")(
                handle=handle, num_required=self.n, dtype=dtype
            )
            prefix = prefix.removeprefix("Sparse")
            self._count = getattr(raw_ops, f"{prefix}AccumulatorNumAccumulated")(handle=handle)
            self._set = getattr(raw_ops, f"{prefix}AccumulatorSetGlobalStep")(
                handle=handle, new_global_step=self.step
            )
        self.session = Session(graph)

    def _apply_op(self, prefix: str, handle: Any) -> Any:
        if not self.is_sparse:
            op = getattr(raw_ops, f"{prefix}AccumulatorApplyGradient")
            return op(handle=handle, local_step=self.step, gradient=self.gradient)
        return raw_ops.SparseAccumulatorApplyGradient(
            handle=handle,
            local_step=self.step,
            gradient_indices=self.indices,
            gradient_values=self.gradient,
            gradient_shape=self.shape,
            has_known_shape=True,
        )

    def apply(self, gradient: Any, step: int = 0, indices: Any = (), shape: Any = (5, 2)) -> None:
        feed = {self.step: step, self.gradient: gradient}
        if self.is_sparse:
            feed |= {self.indices: indices, self.shape: shape}
        self.session.run(self._apply, feed)

    def take(self, n: int, **kwargs: Any) -> Any:
        taken = self.session.run(self._take, {self.n: n}, **kwargs)
        return [part.tolist() for part in taken] if self.is_sparse else taken.tolist()

    def set_global_step(self, step: int) -> None:
        self.session.run(self._set, {self.step: step})

    @property
    def count(self) -> int:
        return int(self.session.run(self._count))


@pytest.mark.parametrize("prefix", ["", "Resource"])
def test_the_mean_of_what_is_not_stale(prefix: str) -> None:
    gradients = Accumulator(prefix, [None, 2])
    gradients.apply([[1, 2]])
    gradients.apply([[3, 5]])
    assert gradients.count == 2
    assert gradients.take(2) == [[2, 3.5]]
    assert gradients.count == 0
    gradients.apply([[1, 1]], step=0)  # stale: the global step is 1
    assert gradients.count == 0
    gradients.apply([[1, 1]], step=1)
    gradients.set_global_step(5)
    gradients.apply([[9, 9]], step=4)
    assert gradients.take(1) == [[1, 1]]


def test_shapes_and_numbers_are_checked() -> None:
    gradients = Accumulator("", [None, 2])
    with pytest.raises(InvalidArgumentError, match=r"expected \[\?,2\], got \[2\]"):
        gradients.apply([1, 2])
    gradients.apply([[1, 2]])
    with pytest.raises(InvalidArgumentError, match=r"expected \[1,2\], got \[2,2\]"):
        gradients.apply([[1, 2], [3, 4]])
    for n in (0, -1):
        with pytest.raises(InvalidArgumentError, match=f"must be positive, but was {n}"):
            gradients.take(n)
    assert gradients.take(1) == [[1, 2]]


@pytest.mark.parametrize(
    ("reduction", "expected"), [("MEAN", [333.75, 1.7001953125]), ("SUM", [1001.0, 5.1015625])]
)
def test_halves_are_summed_as_halves(reduction: str, expected: list[float]) -> None:
    gradients = Accumulator("Resource", [2], float16, reduction_type=reduction)
    for gradient in ([1, 2], [1000, 3], [0.1, 0.1]):
        gradients.apply(gradient)
    assert gradients.take(3) == expected


def test_a_take_waits_for_enough_gradients() -> None:
    gradients = Accumulator("Resource", [], float64)
    taking = started(gradients.take, 2)
    gradients.apply(1.0)
    assert not taking.done()
    gradients.apply(4.0)
    assert taking.result(WAIT_S) == 2.5
    with pytest.raises(DeadlineExceededError):
        gradients.take(1, options=RunOptions(timeout_in_ms=100))
    gradients.apply(7.0, step=1)
    assert gradients.take(1) == 7


def test_rows_are_averaged_over_the_gradients_that_have_them() -> None:
    gradients = Accumulator("Sparse", [None, 2])
    gradients.apply([[1, 2], [3, 4]], indices=[0, 2])
    gradients.apply([[10, 20], [30, 40]], indices=[1, 2])
    assert gradients.take(2) == [[0, 1, 2], [[1, 2], [10, 20], [16.5, 22]], [-1, 2]]
    gradients.apply([[1, 1]], indices=[0])
    assert gradients.count == 0


def test_rows_may_be_summed() -> None:
    gradients = Accumulator("Sparse", [4, 2], reduction_type="SUM")
    gradients.apply([[1, 2], [3, 4]], indices=[0, 2], shape=[4, 2])
    gradients.apply(np.zeros((0, 2)), indices=[], shape=[4, 2])
    gradients.apply([[10, 20], [30, 40]], indices=[1, 2], shape=[4, 2])
    assert gradients.take(3) == [[0, 1, 2], [[1, 2], [10, 20], [33, 44]], [4, 2]]
    with pytest.raises(InvalidArgumentError, match="index is 4 exceeded 4"):
        gradients.apply([[1, 2]], step=1, indices=[4], shape=[4, 2])


@pytest.mark.parametrize(
    ("indices", "gradient", "shape", "message"),
    [
        ([[0]], [[1, 1]], (5, 2), r"indices should be vector but received shape: \[1,1\]"),
        ([0], 1.0, (5, 2), "cannot be 0-dimensional"),
        ([0, 1], [[1, 1]], (5, 2), "Expected 2 non-empty input values, got 1"),
        ([0], [1], (5, 2), "values rank at least 2, got 1"),
        ([0], [[1, 1, 1]], (5, 2), "values dim 1 to be 2, got 3"),
        ([0], [[1, 1]], (5, 3), "shape dim 1 to be 2, got 3"),
        ([0], [[1, 1]], (5,), "shape rank at least 2, got 1"),
    ],
)
def test_rows_are_checked(indices: Any, gradient: Any, shape: Any, message: str) -> None:
    gradients = Accumulator("Sparse", [None, 2])
    with pytest.raises(InvalidArgumentError, match=message):
        gradients.apply(gradient, indices=indices, shape=shape)
    assert gradients.count == 0


def test_ops_want_accumulators_of_their_kind_and_type() -> None:
    with Graph().as_default() as graph:
        dense = raw_ops.ConditionalAccumulator(dtype=float32, shape=PartialTensorShape([]))
        sparse = raw_ops.SparseConditionalAccumulator(dtype=float32, shape=PartialTensorShape([]))
        take = {"num_required": np.int32(1), "dtype": float32}
        wrong_kind = [
            raw_ops.AccumulatorTakeGradient(handle=sparse, **take),
            raw_ops.SparseAccumulatorTakeGradient(handle=dense, **take)[0],
        ]
        wrong_type = raw_ops.AccumulatorTakeGradient(
            handle=dense, num_required=np.int32(1), dtype=float64
        )
    with Session(graph) as session:
        for fetch in wrong_kind:
            with pytest.raises(InvalidArgumentError, match="ConditionalAccumulator is expected"):
                session.run(fetch)
        with pytest.raises(InvalidArgumentError, match="Signature mismatch"):
            session.run(wrong_type)
