"""A kernel that waits without a thread: `async def compute`."""

import asyncio
import time

import numpy as np

import opkernel
from opkernel.opdef import unchanged_shape

DELAY = opkernel.register_op(
    "Delay",
    inputs=["x: float"],
    outputs=["y: float"],
    attrs=["seconds: float"],
    shape_fn=unchanged_shape,
)


@opkernel.register_kernel(DELAY, device="CPU")
class DelayOp(opkernel.OpKernel):
    """Asks a service that answers late, and may refuse."""

    def __init__(self, construction: opkernel.OpKernelConstruction) -> None:
        super().__init__(construction)
        self.seconds = construction.get_attr("seconds")

    async def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Compute one step on the event loop of the process."""
        x = ctx.input("x")
        ctx.requires(np.all(x >= 0), "the service takes no negative numbers")
        await asyncio.sleep(self.seconds)
        ctx.set_output("y", np.sqrt(x))


def main() -> None:
    start = time.monotonic()
    print(opkernel.raw_ops.Delay(x=np.float32(16), seconds=0.05))
    print("waited" if time.monotonic() - start >= 0.05 else "did not wait")
    try:
        opkernel.raw_ops.Delay(x=np.float32(-1), seconds=0.05)
    except opkernel.errors.InvalidArgumentError as error:
        print(f"refused: {error.message}")


if __name__ == "__main__":
    main()
