"""Shape of RaggedTensorToTensor: the shape asked for, filled in from that of the flat values.

Source: TensorFlow core/ops/ragged_conversion_ops.cc, core/util/ragged_to_dense_util.cc.
"""

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle

__all__ = ["PARTITION_TYPES", "ragged_tensor_to_tensor_shape"]

PARTITION_TYPES = (
    "FIRST_DIM_SIZE",
    "VALUE_ROWIDS",
    "ROW_LENGTHS",
    "ROW_SPLITS",
    "ROW_LIMITS",
    "ROW_STARTS",
)
_SUPPORTED_TYPES = ("FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS")


def ragged_tensor_to_tensor_shape(c: InferenceContext) -> None:
    """Shape function of RaggedTensorToTensor."""
    asked = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(0)
    partitions: list[str] = c.get_attr("row_partition_types")
    for name in partitions:
        if name not in PARTITION_TYPES:
            raise InvalidArgumentError(f"Unknown string for partition info type: {name}")
    _check_partition_types(partitions)
    _check_partition_tensors(c, partitions)
    values, default = c.input(1), c.input(2)
    _check_default_value(default, values)
    ragged_rank = len(partitions) - (partitions[0] == "FIRST_DIM_SIZE")
    c.set_output(0, _combine(c, ragged_rank, asked, values))


def _check_partition_types(partitions: Sequence[str]) -> None:
    for name in partitions:
        if name not in _SUPPORTED_TYPES:
            raise InvalidArgumentError(f"Unsupported partition type: {name}")
    if not partitions:
        raise InvalidArgumentError("Partition info types should not be empty")
    if "FIRST_DIM_SIZE" in partitions[1:]:
        raise InvalidArgumentError("FIRST_DIM_SIZE must be first")
    if partitions[0] == "FIRST_DIM_SIZE" and list(partitions[1:2]) != ["VALUE_ROWIDS"]:
        raise InvalidArgumentError("FIRST_DIM_SIZE must be followed by VALUE_ROWIDS")
    if partitions[0] == "VALUE_ROWIDS":
        raise InvalidArgumentError("VALUE_ROWIDS cannot be first")


def _check_partition_tensors(c: InferenceContext, partitions: Sequence[str]) -> None:
    count = c.get_attr("num_row_partition_tensors")
    if count != len(partitions):
        raise InvalidArgumentError(
            f"Number of row partition tensors ({count}) does not equal the number of row "
            f"partition types({len(partitions)})."
        )
    for i, name in enumerate(partitions):
        rank = c.rank(c.input(3 + i))
        if name == "FIRST_DIM_SIZE" and rank > 0:
            raise InvalidArgumentError("FIRST_DIM_SIZE must be a scalar.")
        if name != "FIRST_DIM_SIZE" and c.rank_known(c.input(3 + i)) and rank != 1:
            raise InvalidArgumentError("Row partition must be a vector.")


def _check_default_value(default: ShapeHandle, values: ShapeHandle) -> None:
    """The default value must broadcast to a row of the flat values."""
    if default.dims is None or values.dims is None:
        return
    shapes = f"default_value.shape={default} and rt_input.flat_values.shape={values}"
    if len(default.dims) >= len(values.dims):
        raise InvalidArgumentError(
            f"{shapes} are incompatible: default_value.rank = {len(default.dims)}  must be less "
            f"than rt_input.flat_values.rank = {len(values.dims)}"
        )
    for i, (own, row) in enumerate(zip(default.dims, values.dims[1:], strict=False)):
        if own.value >= 0 and row.value >= 0 and own.value not in (1, row.value):
            index = i - len(default.dims)
            raise InvalidArgumentError(
                f"{shapes} are incompatible: default_value.shape[{index}] = {own} but "
                f"rt_input.flat_values.shape[{index}] = {row}"
            )


def _combine(
    c: InferenceContext, ragged_rank: int, asked: ShapeHandle, values: ShapeHandle
) -> ShapeHandle:
    """The result's shape, as new dimensions: those asked for, else the inner ones of the values."""
    if asked.dims is None and values.dims is None:
        return c.unknown_shape()
    if values.dims is None:
        return _copy(c, asked.dims or ())
    rank = ragged_rank + len(values.dims)
    sizes = [DimensionHandle()] * rank if asked.dims is None else list(asked.dims)
    incompatible = f"rt_input.shape and shape={asked} are incompatible: "
    if len(sizes) != rank:
        raise InvalidArgumentError(
            f"{incompatible}rt_input.rank = {rank} but shape.rank = {len(sizes)}"
        )
    for i, dim in enumerate(values.dims[1:], start=ragged_rank + 1):
        if dim.value >= 0 and sizes[i].value >= 0 and dim.value != sizes[i].value:
            raise InvalidArgumentError(
                f"{incompatible}rt_input.shape[{i}] = {dim} but shape[{i}] = {sizes[i]}"
            )
        if sizes[i].value < 0:
            sizes[i] = dim
    return _copy(c, sizes)


def _copy(c: InferenceContext, dims: Sequence[DimensionHandle]) -> ShapeHandle:
    return c.make_shape([dim.value for dim in dims])
