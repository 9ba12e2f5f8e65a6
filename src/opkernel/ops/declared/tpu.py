"""Shapes of ops of tensor processing units: what goes into a unit, and embeddings without repeated rows.

The other ops of TPUs have no shape function.

Source: TensorFlow core/ops/tpu_ops.cc, core/tpu/ops/tpu_embedding_ops.cc, sparse_core_preprocess_ops.cc.
"""

from google.protobuf.message import DecodeError

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, scalar_shape, unknown_shape
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.proto import TensorProto
from opkernel.types import tensor_from_proto


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


_SCALAR = (
    "ComputeDedupDataSize",
    "ComputeDedupDataSizeV2",
    "GlobalIterId",
    "MergeDedupData",
    "Prelinearize",
    "PrelinearizeTuple",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SCALAR, scalar_shape),
    "ComputeDedupDataTupleMask": shape_rule("-> [?, ?]"),
    "ComputeDedupDataTupleMaskV2": shape_rule("-> [?, ?]"),
    "ConvertToCooTensor": shape_rule("-> [?], [?], [?]"),
    "SplitDedupData": _split_dedup_data,
    "UpdateTaskIdAndGlobalCoreArray": unknown_shape,
}
