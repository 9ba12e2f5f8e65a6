"""Shapes of ops on sparse tensors: the three tensors indices [n, r], values [n] and shape [r].

Source: TensorFlow core/ops/sparse_ops.cc, data_flow_ops.cc.
"""

from functools import partial

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeHandle,
    sparse_reduce_shape,
    unknown_shape,
)
from opkernel.ops.declared.rules import (
    check_input_ranks,
    fixed_shapes,
    outputs_as_inputs,
    set_outputs,
)

_SPARSE_RANKS = (2, 1, 1)
_UNKNOWN_SPARSE = ((None, None), (None,), (None,))


def _sparse_add(c: InferenceContext) -> None:
    shape = c.with_rank(c.input(2), 1)
    set_outputs(c, [c.matrix(None, c.dim(shape, 0)), c.vector(None), shape])


def _sparse_add_grad(c: InferenceContext) -> None:
    a_indices, b_indices = c.with_rank(c.input(1), 2), c.with_rank(c.input(2), 2)
    set_outputs(c, [c.vector(c.dim(a_indices, 0)), c.vector(c.dim(b_indices, 0))])


def _values_of(index: int, c: InferenceContext) -> None:
    """Output 0 has one value for each row of the indices at input `index`."""
    indices = c.with_rank(c.input(index), 2)
    c.set_output(0, c.vector(c.dim(indices, 0)))


def _sparse_concat(c: InferenceContext) -> None:
    count = c.num_inputs() // 3
    rows, columns, shape = c.make_dim(0), c.unknown_dim(), c.unknown_shape()
    for i in range(count):
        indices = c.with_rank(c.input(i), 2)
        values = c.with_rank(c.input(count + i), 1)
        input_shape = c.with_rank(c.input(2 * count + i), 1)
        rows = c.add(rows, c.merge(c.dim(indices, 0), c.dim(values, 0)))
        columns = c.merge(columns, c.dim(indices, 1))
        shape = c.merge(shape, input_shape)
    set_outputs(c, [c.matrix(rows, columns), c.vector(rows), shape])


def _part_of(c: InferenceContext, shape: ShapeHandle) -> list[ShapeHandle]:
    """The three tensors of a sparse tensor of the rank that the vector `shape` has elements."""
    return [c.matrix(None, c.num_elements(shape)), c.vector(None), shape]


def _sparse_slice(c: InferenceContext) -> None:
    set_outputs(c, _part_of(c, c.input(2)))


def _sparse_split(c: InferenceContext) -> None:
    count = c.num_outputs() // 3
    set_outputs(c, [part for part in _part_of(c, c.input(3)) for _ in range(count)])


def _sparse_reorder(c: InferenceContext) -> None:
    set_outputs(c, check_input_ranks(c, *_SPARSE_RANKS)[:2])


def _sparse_reshape(c: InferenceContext) -> None:
    indices, _, new_shape = check_input_ranks(c, *_SPARSE_RANKS)
    set_outputs(c, [c.matrix(c.dim(indices, 0), c.dim(new_shape, 0)), new_shape])


def _sparse_softmax(c: InferenceContext) -> None:
    c.set_output(0, check_input_ranks(c, *_SPARSE_RANKS)[1])


def _sparse_fill_empty_rows(c: InferenceContext) -> None:
    indices, values, shape, _ = check_input_ranks(c, 2, 1, 1, 0)
    rows = c.merge(c.dim(indices, 0), c.dim(values, 0))
    c.merge(c.dim(indices, 1), c.dim(shape, 0))
    filled = [c.matrix(None, c.num_elements(shape)), c.vector(None)]
    dense = c.make_shape_from_shape_tensor(2)
    set_outputs(c, [*filled, c.vector(c.dim(dense, 0)), c.vector(rows)])


def _sparse_fill_empty_rows_grad(c: InferenceContext) -> None:
    reverse_index_map, _ = check_input_ranks(c, 1, 1)
    set_outputs(c, [reverse_index_map, c.scalar()])


def _sparse_to_dense(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_shape_tensor(1))


def _sparse_tensor_dense_matmul(c: InferenceContext) -> None:
    check_input_ranks(c, 2, 1)
    a = c.with_rank(c.make_shape_from_shape_tensor(2), 2)
    b = c.with_rank(c.input(3), 2)
    adjoint_a, adjoint_b = c.get_attr("adjoint_a"), c.get_attr("adjoint_b")
    rows, columns = c.dim(a, 1 if adjoint_a else 0), c.dim(b, 0 if adjoint_b else 1)
    c.merge(c.dim(a, 0 if adjoint_a else 1), c.dim(b, 1 if adjoint_b else 0))
    c.set_output(0, c.matrix(rows, columns))


def _deserialize_sparse(c: InferenceContext) -> None:
    serialized = c.with_rank_at_least(c.input(0), 1)
    c.with_value(c.dim(serialized, -1), 3)
    set_outputs(c, map(c.make_shape, _UNKNOWN_SPARSE))


def _deserialize_many_sparse(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 2)
    _deserialize_sparse(c)


_matrix_of_two_columns = fixed_shapes((None, 2), (None,), (2,))
_serialize = partial(fixed_shapes, input_ranks=_SPARSE_RANKS)
_cwise = partial(_values_of, 0)
_min_or_max = fixed_shapes((None, None), (None,), input_ranks=_SPARSE_RANKS * 2)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AddManySparseToTensorsMap": _serialize((None,)),
    "AddSparseToTensorsMap": _serialize(()),
    "DeserializeManySparse": _deserialize_many_sparse,
    "DeserializeSparse": _deserialize_sparse,
    "SerializeManySparse": _serialize((None, 3)),
    "SerializeSparse": _serialize((3,)),
    "SparseAdd": _sparse_add,
    "SparseAddGrad": _sparse_add_grad,
    "SparseConcat": _sparse_concat,
    "SparseCross": _matrix_of_two_columns,
    "SparseCrossHashed": _matrix_of_two_columns,
    "SparseCrossV2": _matrix_of_two_columns,
    "SparseDenseCwiseAdd": _cwise,
    "SparseDenseCwiseDiv": _cwise,
    "SparseDenseCwiseMul": _cwise,
    "SparseFillEmptyRows": _sparse_fill_empty_rows,
    "SparseFillEmptyRowsGrad": _sparse_fill_empty_rows_grad,
    "SparseReduceMax": sparse_reduce_shape,
    "SparseReduceMaxSparse": unknown_shape,
    "SparseReduceSum": sparse_reduce_shape,
    "SparseReduceSumSparse": unknown_shape,
    "SparseReorder": _sparse_reorder,
    "SparseReshape": _sparse_reshape,
    "SparseSlice": _sparse_slice,
    "SparseSliceGrad": partial(_values_of, 1),
    "SparseSoftmax": _sparse_softmax,
    "SparseSparseMaximum": _min_or_max,
    "SparseSparseMinimum": _min_or_max,
    "SparseSplit": _sparse_split,
    "SparseTensorDenseAdd": outputs_as_inputs(3),
    "SparseTensorDenseMatMul": _sparse_tensor_dense_matmul,
    "SparseToDense": _sparse_to_dense,
    "TakeManySparseFromTensorsMap": fixed_shapes(*_UNKNOWN_SPARSE, input_ranks=(1,)),
}
