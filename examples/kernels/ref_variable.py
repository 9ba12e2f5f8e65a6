"""References: a variable as TensorFlow 1 has it, an array that other kernels replace and change."""

import numpy as np

import opkernel
from opkernel.kernel import TensorRef
from opkernel.opdef import unchanged_shape, unknown_shape

FLOAT_REF = ["ref: Ref(float)"]
VARIABLE = opkernel.register_op(
    "MyVariable", outputs=FLOAT_REF, shape_fn=unknown_shape, is_stateful=True
)
ASSIGN = opkernel.register_op(
    "MyAssign",
    inputs=[*FLOAT_REF, "value: float"],
    outputs=["output_ref: Ref(float)"],
    shape_fn=unknown_shape,
    allows_uninitialized_input=True,
)
ASSIGN_ADD = opkernel.register_op(
    "MyAssignAdd",
    inputs=[*FLOAT_REF, "value: float"],
    outputs=["output_ref: Ref(float)"],
    shape_fn=unchanged_shape,
)
READ = opkernel.register_op(
    "MyRead", inputs=FLOAT_REF, outputs=["value: float"], shape_fn=unchanged_shape
)


@opkernel.register_kernel(VARIABLE, device="CPU")
class VariableOp(opkernel.OpKernel):
    """Owns the array and its lock."""

    def __init__(self, construction: opkernel.OpKernelConstruction) -> None:
        super().__init__(construction)
        self.ref = TensorRef()

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Hand out the reference."""
        ctx.set_output_ref("ref", self.ref)


@opkernel.register_kernel(ASSIGN, device="CPU")
class AssignOp(opkernel.OpKernel):
    """Gives the variable a value of any shape."""

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Replace the array that the reference holds."""
        ctx.replace_ref_input("ref", np.array(ctx.input("value")))
        ctx.forward_ref_input_to_ref_output("ref", "output_ref")


@opkernel.register_kernel(ASSIGN_ADD, device="CPU")
class AssignAddOp(opkernel.OpKernel):
    """Adds to the variable, in place."""

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Change the array while its lock is held."""
        with ctx.input_ref_mutex("ref"):
            array = ctx.mutable_input("ref", lock_held=True)
            array += ctx.input("value")
        ctx.forward_ref_input_to_ref_output("ref", "output_ref")


@opkernel.register_kernel(READ, device="CPU")
class ReadOp(opkernel.OpKernel):
    """The value of the variable as it is now."""

    def compute(self, ctx: opkernel.OpKernelContext) -> None:
        """Copy it, under its lock."""
        with ctx.input_ref_mutex("ref"):
            array = ctx.mutable_input("ref", lock_held=True)
            ctx.set_output("value", np.copy(array))


def main() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        variable = graph.create_op("MyVariable", [], name="v").outputs[0]
        value = graph.create_op(
            "Const",
            [],
            attrs={"dtype": opkernel.float32, "value": np.array([1, 2], np.float32)},
        ).outputs[0]
        graph.create_op("MyAssign", [variable, value], name="assign")
        graph.create_op("MyAssignAdd", [variable, value], name="add")
        graph.create_op("MyRead", [variable], name="read")
        graph.create_op("Neg", [variable], name="negated")  # takes the value, not the reference
    with opkernel.Session(graph) as session:
        try:
            session.run(graph.get_operation_by_name("add"))
        except opkernel.errors.FailedPreconditionError as error:
            print(f"refused: {error.message}")
        for node in ("assign", "add", "add"):
            session.run(graph.get_operation_by_name(node))
            print(f"after {node}: {session.run('read:0')} {session.run('negated:0')}")


if __name__ == "__main__":
    main()
