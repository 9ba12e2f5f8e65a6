"""The CPU's kernels of ops that only XLA computes: one node, compiled for each combination of shapes.

They serve the declared ops whose record says `extra=xla`: the operations of XLA, and StableHLO modules. No session
needs an engine for them.

Source: TensorFlow compiler/jit/xla_compile_on_demand_op.h, and compiler/tf2xla/xla_op_registry.h for CPU devices.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property

from opkernel.device.budget import current_budget
from opkernel.device.local_device import CPU
from opkernel.errors import FailedPreconditionError, ResourceExhaustedError
from opkernel.graph import FunctionBody, Graph, graph_to_function_def, instantiate_function
from opkernel.kernel import OpKernelConstruction, OpKernelContext, register_kernel
from opkernel.libraries import check_installed
from opkernel.ops.loader import declared_ops_of_extra
from opkernel.runtime.engines.cluster_kernel import CLUSTER_CONTRACT, ClusterKernel
from opkernel.runtime.program.request import is_compiling_forbidden
from opkernel.types import DataType
from opkernel.xla.op_registry import global_xla_op_registry


class CompiledOp(ClusterKernel):
    """Computes one node with XLA.

    The cluster takes the compile-time constants first, then other tensors, then the variables.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        registry, op_def = global_xla_op_registry(), construction.op_def
        constant = set(registry.compile_time_constant_inputs(self.node_def, op_def))
        places = range(self.num_inputs)
        resources = [i for i in places if self.input_types[i] is DataType.DT_RESOURCE]
        constants = [i for i in places if i in constant and i not in resources]
        others = [i for i in places if i not in constant and i not in resources]
        self._order = [*constants, *others, *resources]
        self.num_constants, self.num_resources = len(constants), len(resources)
        self._is_in_order = self._order == [*places]

    @cached_property
    def body(self) -> FunctionBody:
        """The node as a function, whose arguments are in the cluster's order."""
        library = None if self.library is None else self.library.known_functions()
        graph = Graph(function_library=library)
        types = [self.input_types[place] for place in self._order]
        arguments = {
            place: graph.create_op("_Arg", name=f"arg{place}", attrs={"T": dtype, "index": index})
            for index, (place, dtype) in enumerate(zip(self._order, types, strict=True))
        }
        inputs = [arguments[place].outputs[0] for place in range(self.num_inputs)]
        node = self.node_def
        op = graph.create_op(node.op, inputs, attrs=dict(node.attr), name=node.name or node.op)
        ordered = [arguments[place].outputs[0] for place in self._order]
        function = graph_to_function_def(graph, op.type, ordered, op.outputs, body=[op])
        return instantiate_function(graph.function_library, function)

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program for the inputs, compiled if there is none.

        Raises:
            FailedPreconditionError: a variable does not exist, or is given twice; or nothing may be compiled.
            ResourceExhaustedError: it is evaluated in advance, for shapes or constants: nothing is compiled for that.
            UnimplementedError: JAX is not installed.
            OpError: XLA does not compile the node for these inputs.
        """
        budget = current_budget()
        if budget is not None and budget.counts_work:
            raise ResourceExhaustedError(f"{self.node_def.op} is compiled for steps only")
        if is_compiling_forbidden():
            raise FailedPreconditionError(
                f"{self.node_def.op} has to be compiled, and OPKERNEL_JIT=never forbids it"
            )
        check_installed("jax", self.node_def.op)
        given = ctx.inputs if self._is_in_order else [ctx.inputs[place] for place in self._order]
        with ExitStack() as held:
            variables = self.variables(ctx, given, held)
            if variables is None:
                raise FailedPreconditionError("A variable does not exist, or is given twice")
            held.enter_context(variables.locked())
            inputs = variables.inputs()
            program = self.program(ctx, inputs)
            assert program is not None
            results = self.run_and_assign(ctx, program, variables, inputs, given)
            assert results is not None
        ctx.outputs[:] = results


for _op in declared_ops_of_extra("xla"):
    register_kernel(_op, device=CPU.device_type, contract=CLUSTER_CONTRACT)(CompiledOp)
