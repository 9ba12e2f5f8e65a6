"""Ops on sparse tensors beside TensorFlow's: drawn tensors of several ranks, with empty ones, in any order."""

from typing import Any

import numpy as np
import pytest

from opkernel.testing import assert_close, run_op

pytestmark = pytest.mark.tensorflow

SHAPES = [(7,), (5, 6), (3, 4, 5), (4, 0)]
DTYPES = ["float32", "float64", "int32", "complex64"]


def drawn(seed: int, shape: tuple[int, ...], dtype: str, is_sorted: bool = True) -> list[Any]:
    """Indices, values and shape of a sparse tensor."""
    generator = np.random.default_rng(seed)
    indices = np.argwhere(generator.random(shape) < 0.4)
    if not is_sorted:
        indices = generator.permutation(indices)
    values = (4 * generator.normal(size=len(indices))).astype(dtype)
    if dtype == "complex64":
        values += 1j * generator.normal(size=len(indices)).astype("float32")
    return [indices, values, np.array(shape)]


def assert_same(tf: Any, op: str, inputs: list[Any], attrs: dict[str, Any] | None = None) -> None:
    names = [arg.name for arg in tf.raw_ops.__dict__[op].__signature__.parameters.values()]
    given = dict(zip(names, inputs, strict=False)) | (attrs or {})
    wanted = tf.nest.flatten(tf.raw_ops.__dict__[op](**given))
    found = run_op(op, inputs, attrs=attrs).outputs
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other.numpy())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_merges_and_parts(tf: Any, shape: tuple[int, ...], dtype: str) -> None:
    a, b = drawn(0, shape, dtype), drawn(1, shape, dtype)
    real = "float32" if dtype == "complex64" else dtype
    assert_same(tf, "SparseAdd", [*a, *b, np.array(1).astype(real)])
    if dtype != "complex64":
        assert_same(tf, "SparseSparseMaximum", [*a, *b])
        assert_same(tf, "SparseSparseMinimum", [*a, *b])
    start, size = np.ones(len(shape), np.int64), np.full(len(shape), 3)
    assert_same(tf, "SparseSlice", [*a, start, size])
    pairs = [list(pair) for pair in zip(a, b, strict=True)]
    assert_same(tf, "SparseConcat", pairs, {"concat_dim": -1})
    assert_same(tf, "SparseReorder", drawn(2, shape, dtype, is_sorted=False))


@pytest.mark.parametrize("shape", SHAPES[1:3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(tf: Any, shape: tuple[int, ...], dtype: str) -> None:
    a = drawn(3, shape, dtype, is_sorted=False)
    for axes in ([0], [-1], list(range(len(shape))), []):
        for keep_dims in (False, True):
            inputs = [*a, np.array(axes, np.int32)]
            for op in ("SparseReduceSum", "SparseReduceSumSparse"):
                assert_same(tf, op, inputs, {"keep_dims": keep_dims})
            if dtype != "complex64":
                assert_same(tf, "SparseReduceMax", inputs, {"keep_dims": keep_dims})
    if dtype[0] == "f":
        assert_same(tf, "SparseSoftmax", a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("adjoint_a", [False, True])
def test_products(tf: Any, dtype: str, adjoint_a: bool) -> None:
    a = drawn(4, (30, 20), dtype, is_sorted=False)
    b = drawn(5, (30 if adjoint_a else 20, 40), dtype)
    dense = np.zeros((30 if adjoint_a else 20, 40), dtype)
    dense[tuple(b[0].T)] = b[1]
    assert_same(tf, "SparseTensorDenseMatMul", [*a, dense], {"adjoint_a": adjoint_a})
    fill = [*a, np.array(7).astype(dtype)]
    assert_same(tf, "SparseFillEmptyRows", fill)
