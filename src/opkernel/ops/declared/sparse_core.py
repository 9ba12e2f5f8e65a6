"""Shapes of ops of the sparse cores of tensor processing units.

Source: TensorFlow core/tpu/ops/sparse_core_ops.cc, sparse_core_preprocess_ops.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, no_outputs, scalar_shape
from opkernel.ops.declared.rules import (
    check_input_ranks,
    check_scalars,
    fixed_shapes,
    outputs_as_inputs,
    set_outputs,
)
from opkernel.types import DataType

_PAD = 8
"""Row pointers of a core are padded to a multiple of this."""


def _all_vectors(c: InferenceContext) -> None:
    set_outputs(c, [c.vector(None) for _ in range(c.num_outputs())])


def _padded(size: int) -> int:
    return -(-size // _PAD) * _PAD


def _csr(samples: str, c: InferenceContext) -> None:
    """Row pointers, three vectors of ids and gains, and three scalars."""
    cores = c.get_attr("num_sc_per_chip")
    rows = cores * c.get_attr("max_minibatches_per_sc") * _padded(c.get_attr("num_replica") * cores)
    ids = c.get_attr("max_ids_per_chip_per_sample") * c.get_attr(samples)
    if samples == "sample_count_per_sc":
        ids *= cores
    vectors = [c.vector(rows), *[c.vector(ids) for _ in range(3)]]
    set_outputs(c, [*vectors, *[c.scalar() for _ in range(3)]])


def _minibatches_in_csr(c: InferenceContext) -> None:
    check_input_ranks(c, *[1] * c.num_inputs())
    _csr("sample_count", c)


def _sort_list(c: InferenceContext) -> None:
    features = c.get_attr("N")
    for name in ("sample_count_list", "col_offset_list"):
        count = len(c.get_attr(name))
        if count != features:
            raise InvalidArgumentError(
                f"{name} must have the same size as number of feature inputs, but got {count} vs "
                f"{features}"
            )
    _all_vectors(c)


# Products


def _dense_matmul(c: InferenceContext) -> None:
    rows, columns, values, _, table = check_input_ranks(c, 1, 1, 1, 0, 2)
    c.merge(columns, rows)
    c.merge(values, rows)
    activations = c.replace_dim(table, 0, c.get_attr("input_size"))
    set_outputs(c, [activations, *[c.vector(None) for _ in range(4)]])


def _matmul_with_csr(c: InferenceContext) -> None:
    _, samples, tokens, gains, table = check_input_ranks(c, 1, 1, 1, 1, 2)
    for shape in (tokens, gains):
        c.merge(shape, samples)
    activations = c.replace_dim(table, 0, c.get_attr("input_size"))
    check_scalars(c, 5)
    c.set_output(0, activations)


def _matmul_with_combiner(c: InferenceContext) -> None:
    _, samples, tokens, positions, gains, table = check_input_ranks(c, 1, 1, 1, 1, 1, 2)
    for shape in (tokens, positions, gains):
        c.merge(shape, samples)
    weights = c.get_attr("num_weights")
    if weights > 0:
        c.with_value(c.dim(c.with_rank(c.input(6), 1), 0), weights)
    size, valency = c.get_attr("input_size"), c.get_attr("max_valency")
    vectors = c.make_shape([size, valency, c.dim(table, 1)])
    set_outputs(c, [c.replace_dim(table, 0, size), c.vector(size), vectors])


def _combiner_gradient(table: int, c: InferenceContext) -> None:
    """All outputs but the last have the shape of the table at input `table`."""
    weights = c.get_attr("num_weights")
    if weights > 0:
        for i in (5, 8):
            c.merge(c.input(i), c.vector(weights))
    size, width = c.dim(c.input(9), 0), c.dim(c.input(table), 1)
    c.merge(c.input(6), c.vector(size))
    c.merge(c.input(7), c.make_shape([size, c.get_attr("max_valency"), width]))
    tables = [c.input(table)] * (c.num_outputs() - 1)
    set_outputs(c, [*tables, c.vector(weights)])


def _gradient_with_csr(c: InferenceContext) -> None:
    set_outputs(c, c.input("tables"))


def _activations_unstack(c: InferenceContext) -> None:
    tables = c.get_attr("num_tables")
    counts, features = c.get_attr("sample_counts"), c.get_attr("features")
    for name, sizes in (("sample counts", counts), ("features", features)):
        if len(sizes) != tables:
            raise InvalidArgumentError(
                f"Invalid number of {name}. Expected: {tables}, got: {len(sizes)}"
            )
    _check_dtypes(c, "activations", c.get_attr("input_dtype"))
    set_outputs(c, [c.matrix(*sizes) for sizes in zip(counts, features, strict=True)])


def _gradients_stack(c: InferenceContext) -> None:
    _check_dtypes(c, "gradients", c.get_attr("dtype"))
    widths = [c.dim(c.input(i), 1).value for i in range(c.num_inputs())]
    samples = c.dim(c.input(0), 0).value * c.num_inputs()
    c.set_output(0, c.matrix(samples, _padded(max(widths))))


def _check_dtypes(c: InferenceContext, what: str, side: DataType) -> None:
    """Stacks convert only between bfloat16 and float; on the `side` of the stack is no bfloat16."""
    stacked, unstacked = c.get_attr("input_dtype"), c.get_attr("dtype")
    if side == DataType.DT_BFLOAT16:
        raise InvalidArgumentError(f"Unsupported dtype for stacked {what}: {stacked.name}")
    both = {stacked, unstacked}
    if len(both) > 1 and both != {DataType.DT_FLOAT, DataType.DT_BFLOAT16}:
        raise InvalidArgumentError(
            f"Unsupported dtype conversion for stacked {what}: {stacked.name} -> {unstacked.name}"
        )


_SLOTS = {
    "Sgd": (6,),
    "Adagrad": (6, 7),
    "AdagradMomentum": (6, 7, 8),
    "Adam": (6, 7, 8),
    "Ftrl": (6, 7, 8),
}
_GRADIENT = "XlaSparseDenseMatmulGradWith"
_COMBINER = "XlaSparseDenseMatmulCustomCombinerOnTc"

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **{f"{_GRADIENT}{name}AndCsrInput": outputs_as_inputs(*s) for name, s in _SLOTS.items()},
    **{
        f"{_GRADIENT}{name}AndStaticBufferSize": outputs_as_inputs(*s) for name, s in _SLOTS.items()
    },
    **{f"{_COMBINER}GradWith{name}AndCsrInput": partial(_combiner_gradient, 12) for name in _SLOTS},
    f"{_COMBINER}GradWithCsrInput": partial(_combiner_gradient, 10),
    f"{_COMBINER}WithCsrInput": _matmul_with_combiner,
    f"{_GRADIENT}CsrInput": _gradient_with_csr,
    "ConvertToCooTensor": _all_vectors,
    "ConvertToListOfSparseCoreCooTensors": _all_vectors,
    "ConvertToSparseCoreCsrWrappedCooTensor": partial(_csr, "sample_count_per_sc"),
    "GetMinibatchSplitsWithPhysicalReplica": fixed_shapes(
        (None,), (None,), (None,), (), (None,), (), ()
    ),
    "GetMinibatchesInCsrWithPhysicalReplica": _minibatches_in_csr,
    "GetStatsFromListOfSparseCoreCooTensors": fixed_shapes((), ()),
    "GlobalIterId": scalar_shape,
    "SortListOfSparseCoreCooTensors": _sort_list,
    "StoreMinibatchStatisticsInFdo": no_outputs,
    "XlaSparseActivationsUnstack": _activations_unstack,
    "XlaSparseCoreAdagrad": outputs_as_inputs(4, 3),
    "XlaSparseCoreAdagradMomentum": outputs_as_inputs(7, 5, 6),
    "XlaSparseCoreAdam": outputs_as_inputs(0, 5, 4),
    "XlaSparseCoreFtrl": outputs_as_inputs(0, 1, 2),
    "XlaSparseCoreSgd": outputs_as_inputs(3),
    "XlaSparseDenseMatmul": _dense_matmul,
    "XlaSparseDenseMatmulWithCsrInput": _matmul_with_csr,
    "XlaSparseDenseMatmulWithStaticBufferSize": _matmul_with_csr,
    "XlaSparseGradientsStack": _gradients_stack,
}
