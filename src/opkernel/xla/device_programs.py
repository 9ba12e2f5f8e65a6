"""The programs of one operation on a device of JAX's: `jax.jit` of the kernel with which XLA compiles the operation.

JAX keeps a program for each combination of shapes. Nodes that differ in nothing but names share their programs.

Why programs, and not the functions of `jax.numpy` one by one: JAX needs some 10 µs to start either, and a kernel
calls several functions.

Source: TensorFlow compiler/jit/xla_compile_on_demand_op.h.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from opkernel.errors import OpError, as_op_error
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
from opkernel.proto import NodeDef
from opkernel.runtime.engines.engine import ClusterArgument
from opkernel.types import DataType
from opkernel.xla.compiler import single_op
from opkernel.xla.graph_compiler import GraphCompiler
from opkernel.xla.jax_numpy import jax, jnp, wide_types
from opkernel.xla.op_registry import XLA_CPU_JIT, XLA_GPU_JIT, global_xla_op_registry
from opkernel.xla.resource import XlaResource

__all__ = ["Programs", "programs_of"]


_MOST_KEPT = 64
"""So many values of compile-time constants have a program each; with others, JAX runs function by function."""

_NONE: Mapping[int, XlaResource] = {}
_Program = Callable[..., tuple[tuple[Any, ...], dict[int, Any]]]


def programs_of(construction: OpKernelConstruction) -> Programs:
    """The programs of a node."""
    kinds = zip(construction.input_types, construction.input_memory_types, strict=True)
    on_host = [
        place
        for place, (dtype, memory) in enumerate(kinds)
        if memory == MemoryType.HOST_MEMORY and dtype is not DataType.DT_RESOURCE
    ]
    op = construction.node_def.op
    node = NodeDef(op=op, name=op.lstrip("_"))
    for name, value in construction.node_def.attr.items():
        if not name.startswith("_"):
            node.attr[name].CopyFrom(value)
    device: Any = construction.device
    return _shared(
        device.jax_device,
        compilation_device_of(device.device_type),
        node.SerializeToString(deterministic=True),
        construction.input_types,
        frozenset(on_host),
        global_xla_op_registry().kernels.version_of(node.op),
    )


def compilation_device_of(device_type: str) -> str:
    """The device type whose kernels for XLA a type's devices run."""
    return XLA_CPU_JIT if device_type == "XLA_CPU" else XLA_GPU_JIT


@functools.lru_cache(maxsize=1024)
def _shared(
    jax_device: Any,
    compilation_device: str,
    node: bytes,
    types: tuple[DataType, ...],
    on_host: frozenset[int],
    version: int,
) -> Programs:
    return Programs(jax_device, compilation_device, NodeDef.FromString(node), types, on_host)


class Programs:
    """The programs of an operation, by the values of its compile-time constants.

    Args:
        jax_device: JAX's device.
        compilation_device: The type of the device whose kernels are compiled.
        node: The operation, without a name.
        types: The types of its inputs.
        on_host: The inputs that are compile-time constants.
    """

    def __init__(
        self,
        jax_device: Any,
        compilation_device: str,
        node: NodeDef,
        types: tuple[DataType, ...],
        on_host: frozenset[int],
    ) -> None:
        self._jax_device, self._compilation_device = jax_device, compilation_device
        self._node, self._types = node, types
        self._constant = tuple(sorted(on_host))
        self._on_device = tuple(i for i in range(len(types)) if i not in on_host)
        self._programs: dict[Any, _Program] = {}
        self._sharding = jax("jax.sharding").SingleDeviceSharding(jax_device)

    def run(
        self, inputs: Sequence[Any], resources: Mapping[int, XlaResource] = _NONE
    ) -> tuple[tuple[Any, ...], dict[int, Any]]:
        """The outputs, and the values of the resources that were written, by input.

        Args:
            inputs: Arrays of JAX, and arrays of NumPy for compile-time constants; of a resource, its value, or
                None if it has none.
            resources: The types and names of the resources.

        Raises:
            OpError: the kernel refuses its inputs, or JAX cannot run it.
        """
        constants = [inputs[place] for place in self._constant]
        key: tuple[Any, ...] = tuple([(one.tobytes(), one.shape) for one in constants])
        if resources:
            key += tuple([(i, one.dtype, inputs[i] is None) for i, one in resources.items()])
        program = self._programs.get(key)
        with wide_types():
            try:
                if program is None:
                    program = self._made(key, constants, resources)
                return program(*[inputs[place] for place in self._on_device])
            except Exception as error:
                raise _reported(error) from error.__cause__

    def _made(
        self, key: Any, constants: Sequence[Any], resources: Mapping[int, XlaResource]
    ) -> _Program:
        """The program for some constants, and for resources of some types."""
        described = {i: (one.name, one.dtype) for i, one in resources.items()}
        program = functools.partial(
            self._traced, dict(zip(self._constant, constants, strict=True)), described
        )
        if len(self._programs) >= _MOST_KEPT:
            return functools.partial(self._one_by_one, program)
        compiled: _Program = jax().jit(program, out_shardings=self._sharding)
        return self._programs.setdefault(key, compiled)

    def _one_by_one(self, program: _Program, *tensors: Any) -> Any:
        with jax().default_device(self._jax_device):
            return program(*tensors)

    def _traced(
        self,
        constants: Mapping[int, Any],
        described: Mapping[int, tuple[str, DataType | None]],
        *tensors: Any,
    ) -> tuple[tuple[Any, ...], dict[int, Any]]:
        """The outputs and the written values; JAX traces this."""
        values = {**constants, **dict(zip(self._on_device, tensors, strict=True))}
        for place, (name, dtype) in described.items():
            values[place] = XlaResource(name, dtype, values[place], place)
        inputs = [values[place] for place in range(len(self._types))]
        _, op = single_op(self._node, [*map(_argument, self._types, inputs)])
        compiler = GraphCompiler(self._compilation_device, global_xla_op_registry())
        outputs = compiler.outputs_of(op, inputs)
        written = {i: inputs[i].value for i in described if inputs[i].is_written}
        return tuple([jnp().asarray(one) for one in outputs]), written


def _argument(dtype: DataType, value: Any) -> ClusterArgument:
    if not isinstance(value, XlaResource):
        return ClusterArgument.parameter(dtype, tuple(value.shape))
    if value.dtype is None or value.value is None:
        return ClusterArgument.variable(DataType.DT_FLOAT, is_initialized=False)
    return ClusterArgument.variable(value.dtype, tuple(value.value.shape))


def _reported(error: Exception) -> OpError:
    """An error of a kernel, or of JAX, whose messages begin with the name of a status code."""
    if hasattr(error, "__notes__"):  # of JAX's own traceback
        del error.__notes__
    if isinstance(error, jax("jax.errors").JaxRuntimeError):
        message = str(error)
        name = message.partition(":")[0]
        for kind in OpError.__subclasses__():
            if kind.code.name == name:
                return kind(message)
    return as_op_error(error)


def compile_on_demand(*, construction: OpKernelConstruction) -> Callable[..., Any]:
    """The kernel of an operation on tensors."""
    programs = programs_of(construction)
    args, results = construction.properties.input_args, construction.properties.output_args
    if len(results) == 1 and not any(arg.is_list for arg in (*args, *results)):
        return lambda *inputs: programs.run(inputs)[0][0]
    return lambda *inputs: _by_arg(programs.run(_flat(inputs, args))[0], results)


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
        self._programs = programs_of(construction)
        types = enumerate(self.input_types)
        self._handles = [place for place, dtype in types if dtype is DataType.DT_RESOURCE]

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program on the values of the variables, and assign to those that it writes."""
        with ExitStack() as held:
            handles = {place: handle_from_input(ctx.input(place)) for place in self._handles}
            variables = {
                place: held.enter_context(lookup_resource(ctx, handle, Var))
                for place, handle in handles.items()
            }
            in_order = sorted(variables.values(), key=id)  # one for all
            held.enter_context(holding([one.tensor_ref.mutex for one in in_order]))
            inputs, resources = list(ctx.inputs), {}
            for place, variable in variables.items():
                inputs[place] = variable.tensor_ref.tensor if variable.is_initialized else None
                resources[place] = XlaResource(handles[place].name, variable.dtype)
            outputs, written = self._programs.run(inputs, resources)
            for place, value in written.items():
                variables[place].assign(value, variables[place].dtype)
            ctx.outputs[:] = outputs
