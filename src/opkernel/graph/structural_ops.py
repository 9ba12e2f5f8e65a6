"""The ops that graphs themselves are made of: arguments and results of functions; names of loops.

Source: TensorFlow core/ops/function_ops.cc.
"""

from opkernel.opdef import InferenceContext, no_outputs, register_op

__all__ = ["ARG_OPS", "MERGE_OPS", "NEXT_ITERATION_OPS", "RETVAL_OPS", "STRUCTURAL_OPS"]

MERGE_OPS = frozenset({"Merge", "RefMerge"})
"""The ops that a loop's back edge may lead to."""
NEXT_ITERATION_OPS = frozenset({"NextIteration", "RefNextIteration"})
"""The ops that a loop's back edge may come from."""
ARG_OPS = frozenset({"_Arg", "_DeviceArg"})
"""The ops whose nodes are the arguments of a function's body."""
RETVAL_OPS = frozenset({"_Retval", "_DeviceRetval"})
"""The ops whose nodes are the results of a function's body."""
STRUCTURAL_OPS = ARG_OPS | RETVAL_OPS
"""The ops that are declared here."""


def arg_shape(c: InferenceContext) -> None:
    """The shape in `_output_shapes` where the attr tells it; of resources, what they hold."""
    c.set_output(0, c.unknown_shape())
    shapes = c.find_attr("_output_shapes")
    if shapes:
        c.set_output(0, c.make_shape_from_partial_shape(shapes[0]))


for _name in sorted(ARG_OPS):
    register_op(
        _name,
        outputs=["output: T"],
        attrs=["T: type", "index: int >= 0"],
        shape_fn=arg_shape,
        is_stateful=True,
        doc="The argument number `index` of a function.",
    )

for _name in sorted(RETVAL_OPS):
    register_op(
        _name,
        inputs=["input: T"],
        attrs=["T: type", "index: int >= 0"],
        shape_fn=no_outputs,
        is_stateful=True,
        doc="The result number `index` of a function.",
    )
