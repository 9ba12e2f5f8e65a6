"""add_loop_variables: a While that takes more than it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opkernel.graph.core.node import copied
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.tensor import Tensor
from opkernel.opdef import attr_from_python
from opkernel.proto import AttrValue
from opkernel.types import PartialTensorShape


def add_loop_variables(
    loop: Operation,
    tensors: Sequence[Tensor],
    shapes: Sequence[PartialTensorShape],
    functions: Mapping[str, AttrValue],
) -> None:
    """Give a While further variables.

    Args:
        loop: the node.
        tensors: what they begin with.
        shapes: what is known of their shapes.
        functions: the attrs that name its functions, which take them.
    """
    inputs = [*loop.inputs, *tensors]
    types = [tensor.dtype.base for tensor in inputs]
    attrs = {**functions, "T": attr_from_python(types, "list(type)")}
    given = loop.attr["output_shapes"].list.shape
    if given:
        known = [PartialTensorShape.from_proto(shape) for shape in given]
        attrs["output_shapes"] = attr_from_python([*known, *shapes], "list(shape)")
    attrs |= further_output_shapes(loop, len(tensors))
    loop.set_attrs(attrs, inputs)


def further_output_shapes(op: Operation, count: int) -> dict[str, AttrValue]:
    """The attr `_output_shapes`, where a node has one, for that node with further outputs."""
    if "_output_shapes" not in op.attr:
        return {}
    shapes = copied(op.attr["_output_shapes"])
    for _ in range(count):
        shapes.list.shape.add(unknown_rank=True)
    return {"_output_shapes": shapes}
