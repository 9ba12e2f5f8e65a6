"""A kernel that reads its attrs, of every type, when it is constructed, and checks them there."""

import opkernel
from opkernel.opdef import unknown_shape

DESCRIBED = opkernel.register_op(
    "Described",
    outputs=["description: string"],
    attrs=[
        "count: int",
        "scale: float = 0.5",
        "verbose: bool = false",
        "mode: {'nearest', 'linear'} = 'nearest'",
        "dtype: type = DT_FLOAT",
        "shape: shape = { unknown_rank: true }",
        "table: tensor = { dtype: DT_INT32 tensor_shape { } int_val: 7 }",
        "sizes: list(int) = [1, 2]",
        "names: list(string) = []",
    ],
    shape_fn=unknown_shape,
)


@opkernel.register_kernel(DESCRIBED, device="CPU")
class DescribedOp(opkernel.OpKernel):
    """Gives the values of its attrs as text."""

    def __init__(self, construction: opkernel.OpKernelConstruction) -> None:
        super().__init__(construction)
        count = construction.get_attr("count")
        construction.requires(count >= 0, f"count must be >= 0, got {count}")
        names = [attr.name for attr in construction.op_def.attr]
        values = {name: construction.get_attr(name) for name in names}
        self.description = ", ".join(f"{name}={value}" for name, value in values.items())
        assert not construction.has_attr("unknown")

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Give what was found at construction."""
        ctx.set_output("description", self.description.encode())


def main() -> None:
    described = opkernel.raw_ops.Described(count=3, mode="linear", shape=[None, 2], names=["a"])
    print(described.decode())
    try:
        opkernel.raw_ops.Described(count=-1)
    except opkernel.errors.InvalidArgumentError as error:
        print(f"refused: {error.message}")


if __name__ == "__main__":
    main()
