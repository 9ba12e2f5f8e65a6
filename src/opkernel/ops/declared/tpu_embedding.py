"""Shapes of ops on the embedding tables of tensor processing units.

Ops whose shapes depend on a TPUEmbeddingConfiguration message have no shape function here.

Source: TensorFlow core/ops/tpu_embedding_ops.cc, core/ops/tpu_embedding_load_retrieve_ops.cc,
core/tpu/ops/tpu_embedding_ops.cc, core/tpu/ops/tpu_embedding_config_ops.cc.
"""

from google.protobuf.message import DecodeError

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, scalar_shape, unknown_shape
from opkernel.ops.declared.rules import fixed_shapes, set_outputs
from opkernel.proto import TensorProto
from opkernel.types import tensor_from_proto


def _check_table(c: InferenceContext) -> None:
    if (c.get_attr("table_id") >= 0) == bool(c.get_attr("table_name")):
        raise InvalidArgumentError("exactly one of table_id or table_name must be non-default")


def _load_parameters(c: InferenceContext) -> None:
    _check_table(c)
    shape = c.with_rank(c.input(0), 2)
    for i in range(1, c.num_inputs()):
        c.merge(shape, c.with_rank(c.input(i), 2))


def _retrieve_parameters(c: InferenceContext) -> None:
    _check_table(c)
    set_outputs(c, [c.matrix(None, None) for _ in range(c.num_outputs())])


def _send_gradients(c: InferenceContext) -> None:
    for shape in c.input("learning_rates"):
        c.with_rank(shape, 0)


def _check_combiners(c: InferenceContext) -> None:
    count, features = len(c.get_attr("combiners")), c.get_attr("N")
    if count not in (0, features):
        raise InvalidArgumentError(
            f"Invalid length of combiners. Have {count} but expected 0 or {features}"
        )


def _scalars(c: InferenceContext) -> None:
    """All inputs are scalars, as far as they are known, and so is output 0."""
    for i in range(c.num_inputs()):
        c.merge(c.input(i), c.scalar())
    set_outputs(c, [c.scalar() for _ in range(c.num_outputs())])


def _finalize_v2(c: InferenceContext) -> None:
    for i in range(c.num_inputs()):
        c.merge(c.input(i), c.scalar())


def _split_dedup_data(c: InferenceContext) -> None:
    """Vectors of the integers and of the floats that the mask counts, by rows (kind, size)."""
    sizes = [0, 0]
    for kind, size in _tuple_mask(c.get_attr("tuple_mask")):
        sizes[kind] += size
    set_outputs(c, [c.vector(size) for size in sizes])


def _tuple_mask(serialized: str) -> list[list[int]]:
    """The rows of the mask, kind 0 for integers and 1 for floats."""
    try:
        proto = TensorProto.FromString(serialized.encode("utf-8", "surrogateescape"))
        mask = tensor_from_proto(proto).reshape(-1, 2)
    except (ValueError, TypeError, OpError, DecodeError):
        raise InvalidArgumentError("Malformed `tuple_mask` attr in SplitDedupData Op.") from None
    if mask.size and not set(mask[:, 0].tolist()) <= {0, 1}:
        raise InvalidArgumentError("Malformed `tuple_mask` attr in SplitDedupData Op.")
    rows: list[list[int]] = mask.tolist()
    return rows


_ALGORITHMS = [
    "ADAM",
    "Adadelta",
    "Adagrad",
    "AdagradMomentum",
    "CenteredRMSProp",
    "FTRL",
    "FrequencyEstimator",
    "MDLAdagradLight",
    "Momentum",
    "ProximalAdagrad",
    "ProximalYogi",
    "RMSProp",
    "StochasticGradientDescent",
]
_UNKNOWN = (
    "ConfigureTPUEmbedding",
    "DynamicEnqueueTPUEmbeddingArbitraryTensorBatch",
    "DynamicEnqueueTPUEmbeddingRaggedTensorBatch",
    "EnqueueTPUEmbeddingArbitraryTensorBatch",
    "EnqueueTPUEmbeddingIntegerBatch",
    "EnqueueTPUEmbeddingRaggedTensorBatch",
    "EnqueueTPUEmbeddingSparseTensorBatch",
)
_SCALAR = (
    "ComputeDedupDataSize",
    "ComputeDedupDataSizeV2",
    "MergeDedupData",
    "XlaRecvTPUEmbeddingDeduplicationData",
    "XlaRecvTPUEmbeddingDeduplicationDataV2",
)
_MERGED_SCALARS = (
    "CollateTPUEmbeddingMemory",
    "ConfigureTPUEmbeddingMemory",
    "ConnectTPUEmbeddingHosts",
    "FinalizeTPUEmbedding",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **{f"LoadTPUEmbedding{name}Parameters": _load_parameters for name in _ALGORITHMS},
    **{f"RetrieveTPUEmbedding{name}Parameters": _retrieve_parameters for name in _ALGORITHMS},
    **dict.fromkeys(_MERGED_SCALARS, _scalars),
    **dict.fromkeys(_SCALAR, scalar_shape),
    **dict.fromkeys(_UNKNOWN, unknown_shape),
    "ComputeDedupDataTupleMask": fixed_shapes((None, None)),
    "ComputeDedupDataTupleMaskV2": fixed_shapes((None, None)),
    "EnqueueTPUEmbeddingBatch": _check_combiners,
    "EnqueueTPUEmbeddingSparseBatch": _check_combiners,
    "FinalizeTPUEmbeddingV2": _finalize_v2,
    "SplitDedupData": _split_dedup_data,
    "SendTPUEmbeddingGradients": _send_gradients,
}
