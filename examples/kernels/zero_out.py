"""ZeroOut, TensorFlow's own first kernel: keeps the first element and sets all others to zero."""

import numpy as np

import opkernel
from opkernel.opdef import unchanged_shape

ZERO_OUT = opkernel.register_op(
    "ZeroOut", inputs=["to_zero: int32"], outputs=["zeroed: int32"], shape_fn=unchanged_shape
)


@opkernel.register_kernel(opkernel.Name("ZeroOut").device("CPU"))
class ZeroOutOp(opkernel.OpKernel):
    """Reads an input and allocates an output."""

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Compute one step."""
        to_zero = ctx.input("to_zero")
        zeroed = ctx.allocate_output("zeroed", to_zero.shape)
        zeroed[...] = 0
        zeroed.reshape(-1)[:1] = to_zero.reshape(-1)[:1]


def main() -> None:
    print(opkernel.raw_ops.ZeroOut(to_zero=np.array([[5, 4], [3, 2]], np.int32)).tolist())


if __name__ == "__main__":
    main()
