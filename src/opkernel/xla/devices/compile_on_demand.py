"""Kernels that compile their operation for the shapes that come, and run the program.

Source: TensorFlow compiler/jit/xla_compile_on_demand_op.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from opkernel.interrupts import holding
from opkernel.kernel import (
    MemoryType,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    handle_from_input,
    lookup_resource,
)
from opkernel.kernel.node_properties import Arg, by_arg
from opkernel.ops.variables.var import Var
from opkernel.types import DataType
from opkernel.xla.devices.programs import Programs, programs_of
from opkernel.xla.resource import XlaResource


def compile_on_demand(*, construction: OpKernelConstruction) -> Callable[..., Any]:
    """The kernel of an operation on tensors."""
    programs = _programs(construction)
    args, results = construction.properties.input_args, construction.properties.output_args
    if len(results) == 1 and not any(arg.is_list for arg in (*args, *results)):
        return lambda *inputs: programs.run(inputs)[0][0]
    return lambda *inputs: _by_arg(programs.run(_flat(inputs, args))[0], results)


def _programs(construction: OpKernelConstruction) -> Programs:
    kinds = zip(construction.input_types, construction.input_memory_types, strict=True)
    on_host = [
        place
        for place, (dtype, memory) in enumerate(kinds)
        if memory == MemoryType.HOST_MEMORY and dtype is not DataType.DT_RESOURCE
    ]
    return programs_of(construction, frozenset(on_host))


def _flat(inputs: Sequence[Any], args: Sequence[Arg]) -> list[Any]:
    flat: list[Any] = []
    for arg, value in zip(args, inputs, strict=True):
        flat += value if arg.is_list else [value]
    return flat


def _by_arg(outputs: Sequence[Any], args: Sequence[Arg]) -> Any:
    found = by_arg(outputs, args)
    return found[0] if len(args) == 1 else tuple(found)


class ResourceOnDemandOp(OpKernel):
    """The kernel of an operation on variables, to which nobody else writes meanwhile."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._programs = _programs(construction)
        types = enumerate(self.input_types)
        self._handles = [place for place, dtype in types if dtype is DataType.DT_RESOURCE]

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program on the values of the variables, and assign to those that it writes."""
        with ExitStack() as held:
            variables = {
                place: held.enter_context(_variable(ctx, place)) for place in self._handles
            }
            in_order = sorted(variables.values(), key=id)  # one for all
            held.enter_context(holding([one.tensor_ref.mutex for one in in_order]))
            inputs, resources = list(ctx.inputs), {}
            for place, variable in variables.items():
                inputs[place] = variable.tensor_ref.tensor if variable.is_initialized else None
                name = handle_from_input(ctx.input(place)).name
                resources[place] = XlaResource(name, variable.dtype)
            outputs, written = self._programs.run(inputs, resources)
            for place, value in written.items():
                variables[place].assign(value, variables[place].dtype)
            ctx.outputs[:] = outputs


def _variable(ctx: OpKernelContext, place: int) -> Var:
    return lookup_resource(ctx, handle_from_input(ctx.input(place)), Var)
