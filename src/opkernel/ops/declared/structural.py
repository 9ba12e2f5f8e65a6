"""Shapes of ops that make up graphs: references, lists, the end of a process.

Source: TensorFlow core/ops/control_flow_ops.cc, array_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    no_outputs,
    unchanged_shape,
    unknown_shape,
)
from opkernel.ops.declared.input_ranks import check_inputs


def _ref_select(c: InferenceContext) -> None:
    """The shape of the references if all have the same and it is fully defined."""
    check_inputs(c, "0")
    first, *others = (c.input(i) for i in range(1, c.num_inputs()))
    sizes = c.as_partial_shape(first)
    same = all(c.fully_defined(other) and c.as_partial_shape(other) == sizes for other in others)
    c.set_output(0, first if c.fully_defined(first) and same else c.unknown_shape())


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "Abort": no_outputs,
    "RefIdentity": unchanged_shape,
    "RefSelect": _ref_select,
    "SyncDevice": no_outputs,
    "_ArrayToList": unknown_shape,
    "_HostCast": unchanged_shape,
    "_ListToArray": unknown_shape,
}
