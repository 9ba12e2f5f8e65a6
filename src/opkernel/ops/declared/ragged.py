"""Shapes of ops on ragged tensors.

Source: TensorFlow core/ops/ragged_array_ops.cc, ragged_conversion_ops.cc, ragged_math_ops.cc,
sparse_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, ShapeHandle
from opkernel.ops.declared.ragged_to_tensor import ragged_tensor_to_tensor_shape
from opkernel.ops.declared.rules import check_input_ranks, set_outputs


def _splits_and_values(c: InferenceContext, ragged_rank: int) -> ShapeHandle:
    """The shape of the flat values, the input after the splits; all splits are vectors."""
    values = c.with_rank_at_least(c.input(ragged_rank), 1)
    check_input_ranks(c, *[1] * ragged_rank)
    return values


def _ragged_gather(c: InferenceContext) -> None:
    params_rank, splits = c.get_attr("PARAMS_RAGGED_RANK"), c.get_attr("OUTPUT_RAGGED_RANK")
    c.with_rank(c.input(params_rank + 1), splits - params_rank + 1)
    check_input_ranks(c, *[1] * params_rank)
    values = c.with_rank_at_least(c.input(params_rank), 1)
    gathered = c.concatenate(c.vector(None), c.subshape(values, 1))
    set_outputs(c, [*[c.vector(None) for _ in range(splits)], gathered])


def _merge_batch_size(c: InferenceContext, splits: ShapeHandle, other: ShapeHandle) -> ShapeHandle:
    try:
        return c.merge(splits, other)
    except InvalidArgumentError:
        raise InvalidArgumentError("inputs must all have the same batch dimension size.") from None


def _ragged_cross(c: InferenceContext) -> None:
    ragged, sparse = len(c.get_attr("ragged_values_types")), c.get_attr("Nsparse")
    if ragged != len(c.get_attr("ragged_splits_types")):
        raise InvalidArgumentError("Parameters `values` and `row_splits` must be the same length")
    if sparse != len(c.get_attr("sparse_values_types")):
        raise InvalidArgumentError("sparse indices and values must have the same length")
    splits = c.vector(None)
    for i in range(ragged, 2 * ragged):
        splits = _merge_batch_size(c, splits, c.input(i))
    for i in range(2 * ragged + 3 * sparse, c.num_inputs()):
        if c.rank(c.input(i)) != 2:
            raise InvalidArgumentError("tf.ragged.cross only supports inputs with rank=2")
        batch = c.dim(c.input(i), 0)
        if c.value_known(batch):
            splits = _merge_batch_size(c, splits, c.vector(batch.value + 1))
    set_outputs(c, [c.vector(None), splits])


def _ragged_range(c: InferenceContext) -> None:
    limits = [c.with_rank_at_most(c.input(i), 1) for i in range(3)]
    rows = c.unknown_dim()
    for shape in limits:
        if c.rank(shape) == 1:
            rows = c.merge(c.dim(shape, 0), rows)
    if c.value_known(rows):
        splits: int | None = rows.value + 1
    else:
        splits = 2 if all(c.rank(shape) == 0 for shape in limits) else None
    set_outputs(c, [c.vector(splits), c.vector(None)])


def _ragged_tensor_from_variant(c: InferenceContext) -> None:
    input_rank, output_rank = c.get_attr("input_ragged_rank"), c.get_attr("output_ragged_rank")
    if input_rank >= 0 and c.rank_known(c.input(0)):
        c.with_rank(c.input(0), output_rank - input_rank)
    set_outputs(c, [c.vector(None) for _ in range(output_rank)])


def _ragged_tensor_to_sparse(c: InferenceContext) -> None:
    ragged_rank = c.get_attr("RAGGED_RANK")
    values = _splits_and_values(c, ragged_rank)
    rank = c.make_dim(c.rank(values) + ragged_rank if c.rank_known(values) else None)
    count = c.num_elements(values)
    set_outputs(c, [c.matrix(count, rank), c.vector(count), c.vector(rank)])


def _ragged_tensor_to_variant(c: InferenceContext) -> None:
    ragged_rank = c.get_attr("RAGGED_RANK")
    _splits_and_values(c, ragged_rank)
    if not c.get_attr("batched_input"):
        c.set_output(0, c.scalar())
        return
    c.set_output(0, c.vector(c.subtract(c.dim(c.input(0), 0), 1)))


def _ragged_tensor_to_variant_gradient(c: InferenceContext) -> None:
    shape = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(2)
    c.set_output(0, shape)


def _ragged_fill_empty_rows(c: InferenceContext) -> None:
    rows, values, _, _ = check_input_ranks(c, 1, 1, 0, 0)
    count = c.merge(c.dim(rows, 0), c.dim(values, 0))
    set_outputs(c, [c.vector(None), c.vector(None), c.vector(None), c.vector(count)])


def _ragged_fill_empty_rows_grad(c: InferenceContext) -> None:
    reverse_index_map, _ = check_input_ranks(c, 1, 1)
    set_outputs(c, [reverse_index_map, c.scalar()])


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "RaggedCross": _ragged_cross,
    "RaggedFillEmptyRows": _ragged_fill_empty_rows,
    "RaggedFillEmptyRowsGrad": _ragged_fill_empty_rows_grad,
    "RaggedGather": _ragged_gather,
    "RaggedRange": _ragged_range,
    "RaggedTensorFromVariant": _ragged_tensor_from_variant,
    "RaggedTensorToSparse": _ragged_tensor_to_sparse,
    "RaggedTensorToTensor": ragged_tensor_to_tensor_shape,
    "RaggedTensorToVariant": _ragged_tensor_to_variant,
    "RaggedTensorToVariantGradient": _ragged_tensor_to_variant_gradient,
}
