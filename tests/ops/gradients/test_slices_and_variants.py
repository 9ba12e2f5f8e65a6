"""Gradients of joined tables by some of their rows, and through ragged tensors in variants."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import UnimplementedError
from opkernel.gradients.gradient_nodes import as_dense

FIRST = np.arange(6.0).reshape(3, 2)
SECOND = np.arange(10.0, 14).reshape(2, 2)
ROWS = [0, 3, 0, 4, 1]
BY = np.arange(1.0, 11).reshape(5, 2)
SUMS = np.array([[6.0, 8], [9, 10], [0, 0], [3, 4], [7, 8]])
"""The rows of BY, added up by ROWS."""


@pytest.fixture
def graph() -> Any:
    graph = Graph()
    with graph.as_default():
        yield graph


def derivatives(graph: Graph, y: Any, xs: list[Any], by: Any) -> Any:
    return Session(graph).run([as_dense(one) for one in opkernel.gradients(y, xs, [by])])


@pytest.mark.parametrize("axis", [0, -2])
def test_rows_of_joined_tables(graph: Graph, axis: int) -> None:
    tables = [opkernel.constant(FIRST), opkernel.constant(SECOND)]
    rows = raw_ops.GatherV2(params=raw_ops.ConcatV2(values=tables, axis=axis), indices=ROWS, axis=0)
    first, second = derivatives(graph, rows, tables, BY)
    np.testing.assert_array_equal(first, SUMS[:3])
    np.testing.assert_array_equal(second, SUMS[3:])


@pytest.mark.parametrize("axis", [1, -1])
def test_rows_of_tables_that_are_side_by_side(graph: Graph, axis: int) -> None:
    tables = [opkernel.constant(FIRST), opkernel.constant(FIRST[:, :1])]
    joined = raw_ops.ConcatV2(values=tables, axis=axis)
    rows = raw_ops.GatherV2(params=joined, indices=[2, 0, 2], axis=0)
    first, second = derivatives(graph, rows, tables, np.arange(1.0, 10).reshape(3, 3))
    np.testing.assert_array_equal(first, [[4, 5], [0, 0], [8, 10]])
    np.testing.assert_array_equal(second, [[6], [0], [12]])


def encoded(values: Any, splits: Any, *, in_rows: bool = True) -> Any:
    return raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[np.array(splits, np.int64)], rt_dense_values=values, batched_input=in_rows
    )


def decoded(rows: Any, rank: int) -> Any:
    *_, values = raw_ops.RaggedTensorFromVariant(
        encoded_ragged=rows,
        input_ragged_rank=rank,
        output_ragged_rank=1,
        Tvalues=opkernel.float64,
        Tsplits=opkernel.int64,
    )
    return values


def test_through_the_rows_of_a_ragged_tensor(graph: Graph) -> None:
    values = opkernel.constant(FIRST)
    result = decoded(encoded(values, [0, 2, 2, 3]), 0)
    (found,) = derivatives(graph, result, [values], FIRST + 1)
    np.testing.assert_array_equal(found, FIRST + 1)


def test_through_some_rows_of_a_ragged_tensor(graph: Graph) -> None:
    values = opkernel.constant(FIRST)
    rows = raw_ops.GatherV2(params=encoded(values, [0, 1, 3]), indices=[1], axis=0)
    assert Session(graph).run(decoded(rows, 0)).tolist() == FIRST[1:].tolist()


def test_variants_of_two_axes_have_no_gradient(graph: Graph) -> None:
    values = opkernel.constant(FIRST)
    rows = raw_ops.Reshape(tensor=encoded(values, [0, 1, 3]), shape=[1, 2])
    *_, result = raw_ops.RaggedTensorFromVariant(
        encoded_ragged=rows,
        input_ragged_rank=0,
        output_ragged_rank=2,
        Tvalues=opkernel.float64,
        Tsplits=opkernel.int64,
    )
    with pytest.raises(UnimplementedError, match="of rank 0 or 1, not 2"):
        opkernel.gradients(result, [values])


def test_sums_and_zeros_of_ragged_tensors(graph: Graph) -> None:
    whole = encoded(opkernel.constant(FIRST), [0, 2, 3], in_rows=False)
    double, zeros = raw_ops.AddN(inputs=[whole, whole]), raw_ops.ZerosLike(x=whole)
    assert Session(graph).run(decoded(double, 1)).tolist() == (2 * FIRST).tolist()
    assert Session(graph).run(decoded(zeros, 1)).tolist() == (0 * FIRST).tolist()


def test_through_a_whole_ragged_tensor(graph: Graph) -> None:
    values = opkernel.constant(FIRST)
    result = decoded(encoded(values, [0, 2, 3], in_rows=False), 1)
    (found,) = derivatives(graph, result, [values], FIRST + 1)
    np.testing.assert_array_equal(found, FIRST + 1)


@pytest.mark.parametrize("in_batch", [False, True])
def test_a_pool_with_argmax_of_several_images(graph: Graph, in_batch: bool) -> None:
    image = np.array([[1.0, 5, 2, 3], [7, 6, 8, 4]], np.float32).reshape(2, 1, 4, 1)
    x = opkernel.constant(image)
    result, places = raw_ops.MaxPoolWithArgmax(
        input=x,
        ksize=[1, 1, 2, 1],
        strides=[1, 1, 2, 1],
        padding="VALID",
        include_batch_in_index=in_batch,
    )
    by = np.arange(1.0, 5, dtype=np.float32).reshape(2, 1, 2, 1)
    (found,) = derivatives(graph, result, [x], by)
    assert found.reshape(2, 4).tolist() == [[0, 1, 0, 2], [3, 0, 4, 0]]
    expected = [1, 3, 4, 6] if in_batch else [1, 3, 0, 2]
    assert Session(graph).run(places).reshape(-1).tolist() == expected
