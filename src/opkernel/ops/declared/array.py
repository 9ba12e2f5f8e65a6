"""Shapes of copies, placeholders for constants, and updates in place.

Source: TensorFlow core/ops/array_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    explicit_shape,
    random_shape,
    unchanged_shape,
    unknown_shape,
)

__all__ = ["SHAPE_FNS"]


def _parallel_concat_shape(c: InferenceContext) -> None:
    """The attr `shape`: inputs with a first dimension of 1, one after the other."""
    shape = c.make_shape_from_partial_shape(c.get_attr("shape"))
    if not c.fully_defined(shape):
        raise InvalidArgumentError("shape attr must be fully defined.")
    merged = c.replace_dim(shape, 0, 1)
    for i in range(c.num_inputs()):
        one = c.input(i)
        if not c.fully_defined(one):
            raise InvalidArgumentError("All input shapes must be fully defined.")
        if c.rank(one) == 0:
            raise InvalidArgumentError(
                f"The rank of all input shapes must be greater than 0, but input {i} had rank 0."
            )
        if c.dim(one, 0).value != 1:
            raise InvalidArgumentError("Size of first dimension must be 1.")
        try:
            merged = c.merge(one, merged)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{error.message} From merging shape {i} with other shapes."
            ) from error
    c.set_output(0, shape)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(("CheckPinned", "Copy", "CopyHost"), unchanged_shape),
    **dict.fromkeys(("ImmutableConst", "_ParallelConcatStart"), explicit_shape),
    **dict.fromkeys(
        ("InplaceAdd", "InplaceSub", "InplaceUpdate", "_ParallelConcatUpdate"), unchanged_shape
    ),
    "Empty": random_shape,
    "HostConst": unknown_shape,
    "ParallelConcat": _parallel_concat_shape,
}
