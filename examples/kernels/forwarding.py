"""Forwarding: a kernel that computes in the buffer of an input which nobody else will read."""

import numpy as np

import opkernel
from opkernel.opdef import unchanged_shape

SOFTSIGN = opkernel.register_op(
    "MySoftsign", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
)


@opkernel.register_kernel(SOFTSIGN, device="CPU")
class SoftsignOp(opkernel.OpKernel):
    """x / (1 + |x|), in place where that is safe."""

    forwards_inputs = True  # the executor hands over its last reference to each input

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Compute one step."""
        shape = np.shape(ctx.input(0))
        divisor = 1 + np.abs(ctx.input(0))
        y, forwarded = ctx.forward_input_or_allocate_output([0], 0, shape)
        print(f"{self.name} computes in", "new memory" if forwarded < 0 else f"input {forwarded}")
        np.divide(ctx.input(0), divisor, out=y)


def main() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        attrs = {"dtype": opkernel.float32}
        x = graph.create_op("Placeholder", [], name="x", attrs=attrs).outputs[0]
        first = graph.create_op("MySoftsign", [x], name="first").outputs[0]
        second = graph.create_op("MySoftsign", [first], name="second").outputs[0]
    fed = np.array([-1, 0, 3], np.float32)
    with opkernel.Session(graph) as session:
        print(session.run(second, {x: fed}).round(3))  # nobody else reads `first`
        print(session.run([first, second], {x: fed})[1].round(3))  # the caller does
    print("fed:", fed.tolist())  # is the caller's, too


if __name__ == "__main__":
    main()
