"""List arguments: `N * T`, N tensors of one type, in and out."""

import numpy as np

import opkernel
from opkernel.opdef import InferenceContext


def same_shapes(c: InferenceContext) -> None:
    """Each output has the shape of the input at its place."""
    for index in range(c.num_inputs()):
        c.set_output(index, c.input(index))


RUNNING = opkernel.register_op(
    "RunningSums",
    inputs=["terms: N * T"],
    outputs=["sums: N * T"],
    attrs=["N: int >= 1", "T: {float, int32}"],
    shape_fn=same_shapes,
)


@opkernel.register_kernel(RUNNING, device="CPU")
class RunningSumsOp(opkernel.OpKernel):
    """The sums of the first, the first two, and so on."""

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Compute one step."""
        terms, sums = ctx.input_list("terms"), ctx.output_list("sums")
        ctx.validate_inputs_are_same_shape()
        so_far = np.zeros_like(terms[0])
        for index, term in enumerate(terms):
            so_far = np.add(so_far, term, out=sums.allocate(index, term.shape))


def main() -> None:
    terms = [np.array([1, 2], np.int32), np.array([10, 20], np.int32), np.array([5, 5], np.int32)]
    print([sums.tolist() for sums in opkernel.raw_ops.RunningSums(terms=terms)])
    try:
        opkernel.raw_ops.RunningSums(terms=[terms[0], np.array([1], np.int32)])
    except opkernel.errors.InvalidArgumentError as error:
        print(f"refused: {error.message}")


if __name__ == "__main__":
    main()
