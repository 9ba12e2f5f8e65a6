"""GraphCompiler: visits the nodes of a graph, each of which adds to the program that is compiled.

It runs while JAX traces the program. Each node's kernel for XLA gets the values of its inputs and gives those of its
outputs. Operations on constants are computed at once, so that shapes and axes are known where kernels need them.

Source: TensorFlow compiler/tf2xla/graph_compiler.h, const_analysis.h; common_runtime/constant_folding.cc for the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.device.local_device import LocalDevice, eager_device
from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.graph.functions.function_body import FunctionBody, instantiate_function
from opkernel.kernel import OpKernel, create_op_kernel
from opkernel.kernel.context.declared_outputs import flat_outputs
from opkernel.kernel.function_kernel import FunctionKernel
from opkernel.kernel.node_properties import by_arg
from opkernel.proto import NameAttrList
from opkernel.runtime.engines.late_work import CompileLimits, output_shapes
from opkernel.runtime.program.error_report import at_node
from opkernel.types import Array, DataType, tensor_from_proto
from opkernel.xla.context import XlaOpKernel, XlaOpKernelContext, not_constant
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.op_registry import XlaKernelRegistration, XlaOpRegistry
from opkernel.xla.resource import XlaResource

_CONSTANT_OPS = frozenset({"Const", "_HostConst"})
_ORDER_ALONE = frozenset({"NoOp", "ControlTrigger"})
_MOST_BYTES = 10 << 20
"""No constant that is computed is larger, as in TensorFlow."""
_SMALL = 1 << 16
_HANDLES = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})


class GraphCompiler:
    """Compiles a graph, and the functions that it calls, into the program that is being traced.

    Args:
        device_type: The compilation device, whose tensors are values of the program. Nothing runs on it.
        registry: The kernels.

    Attributes:
        generator: Where random numbers are drawn: a counter of two numbers and a key, int64; None where there is none.
        wants_generator: Whether a kernel missed the generator.
    """

    def __init__(self, device_type: str, registry: XlaOpRegistry) -> None:
        self._device, self._registry = LocalDevice(device_type, jnp()), registry
        self.generator: XlaResource | None = None
        self.wants_generator = False
        self._types = registry.supported_types(device_type)
        self._bodies: dict[bytes, FunctionBody] = {}
        self._known_rules: dict[str, XlaKernelRegistration] = {}
        # A program itself is asked for all that it takes.
        self._limits = CompileLimits(of_each=True)

    def compile_function(
        self,
        graph: Graph,
        function: NameAttrList,
        inputs: Sequence[Any],
        generator: XlaResource | None = None,
    ) -> list[Any]:
        """The results of a function of a graph's library for values of its arguments.

        Args:
            graph: Has the library.
            function: The function.
            inputs: The arguments.
            generator: Where the function draws random numbers, if not where its caller does.

        Raises:
            NotFoundError: there is no such function, or no kernel for one of its nodes.
            OpError: a kernel refuses its inputs.
        """
        callers = self.generator
        self.generator = callers if generator is None else generator
        try:
            return self.compile_body(self.function_body(graph, function), inputs)
        finally:
            self.generator = callers

    def function_body(self, graph: Graph, function: NameAttrList) -> FunctionBody:
        """A function of a graph's library as a graph; raises NotFoundError where there is none."""
        key = function.SerializeToString(deterministic=True)
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = instantiate_function(graph.function_library, function)
        return body

    def compile_body(self, body: FunctionBody, inputs: Sequence[Any]) -> list[Any]:
        """The results of an instantiated function."""
        given = dict(zip(((node, 0) for node in body.arg_nodes), inputs, strict=True))
        return self.compile(body.outputs, body.targets, given)

    def compile(
        self,
        fetches: Sequence[Tensor],
        targets: Iterable[Operation],
        feeds: Mapping[tuple[Operation, int], Any],
    ) -> list[Any]:
        """The values of tensors, given those of others, after all that has to run for them and for `targets`."""
        values = dict(feeds)
        fed = [op.outputs[index] for op, index in feeds]
        order = prune_and_order(fetches, targets, fed)
        _check_control_flow(order)
        for op in order:
            if (op, 0) in values or op.type in _ORDER_ALONE:
                continue
            inputs = [values[edge] for edge in zip(op.edges[::2], op.edges[1::2], strict=True)]
            try:
                outputs = self.outputs_of(op, inputs)
                self._limits.check_node(op.name, outputs)
            except Exception as error:
                raised = at_node(error, op.name, op.type, inputs)
                raise raised from (error.__cause__ if raised is error else error)
            values.update(zip(((op, index) for index in range(len(outputs))), outputs, strict=True))
        return [values[tensor.op, tensor.value_index] for tensor in fetches]

    def outputs_of(self, op: Operation, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of one operation; raises as `compile` does, without the node's name."""
        if op.type in _CONSTANT_OPS:
            return [_constant(op)]
        if op.type in op.graph.function_library:
            attrs = {name: op.node_def.attr[name] for name in op.node_def.attr}
            return self.compile_function(op.graph, NameAttrList(name=op.type, attr=attrs), inputs)
        folded = _fold(op, inputs)
        if folded is not None:
            return folded
        kernel = self._kernel(op)
        if isinstance(kernel, XlaOpKernel):
            context = XlaOpKernelContext(kernel, op, inputs, self)
            kernel.compile(context)
            return context.outputs
        assert isinstance(kernel, FunctionKernel)
        return _called(kernel, inputs, self._rules(op.type).compile_time_constants)

    def _rules(self, op_type: str) -> XlaKernelRegistration:
        """A registration of an op: all agree on constants, and on the types that may enter or leave."""
        found = self._known_rules.get(op_type)
        if found is None:
            found = self._known_rules[op_type] = self._registry.registrations(op_type)[0]
        return found

    def _kernel(self, op: Operation) -> OpKernel:
        try:
            kernel = create_op_kernel(
                self._device,
                op.node_def,
                op_registry=op.graph.op_registry,
                registry=self._registry.kernels,
            )
        except NotFoundError as error:
            types = ", ".join(dtype.string for dtype in op.signature.input_types)
            raise NotFoundError(
                f"There is {self._registry.rules.missing(op.type)} with inputs of the types ({types}); "
                "opkernel.xla.register_xla_kernel registers one"
            ) from error
        self._check_types(op)
        return kernel

    def _check_types(self, op: Operation) -> None:
        """Refuse types of tensors that XLA does not compute with, unless the kernel allows them."""
        types = (*op.signature.input_types, *op.signature.output_types)
        refused = self._rules(op.type).refused_type(types, self._types)
        if refused is not None:
            raise InvalidArgumentError(
                f"XLA does not compile {op.type} with tensors of type {refused.string}"
            )


def _check_control_flow(order: Iterable[Operation]) -> None:
    """Refuse operations whose outputs may be dead, before anything is compiled."""
    for op in order:
        if op.type in LOW_LEVEL_CONTROL_FLOW and op.type not in _ORDER_ALONE:
            error = UnimplementedError(
                f"{op.type}: control flow of TensorFlow 1 is not compiled, only If, Case and While"
            )
            raise at_node(error, op.name, op.type, [])


def _constant(op: Operation) -> Array:
    return np.asarray(tensor_from_proto(op.node_def.attr["value"].tensor))


def _called(kernel: FunctionKernel, inputs: Sequence[Any], constants: frozenset[str]) -> list[Any]:
    """The outputs of a function kernel; only its compile-time constants are NumPy arrays."""
    args = kernel.properties.input_args
    given = list(inputs)
    for arg in args:
        for place in range(arg.start, arg.stop):
            given[place] = _given(kernel, place, given[place], arg.name in constants)
    outputs = flat_outputs(kernel, kernel.function(*by_arg(given, args)))
    return [
        _as_declared(value, dtype)
        for value, dtype in zip(outputs, kernel.output_types, strict=True)
    ]


def _given(kernel: OpKernel, place: int, value: Any, must_be_constant: bool) -> Any:
    is_constant = isinstance(value, np.ndarray | np.generic)  # plans hold scalars
    if must_be_constant and not is_constant:
        raise not_constant(kernel, place)
    return jnp().asarray(value) if is_constant and not must_be_constant else value


def _as_declared(value: Any, dtype: DataType) -> Any:
    """An output in the type that the op declares; constants stay constants."""
    if dtype in (DataType.DT_VARIANT, DataType.DT_RESOURCE) or isinstance(value, np.ndarray):
        return value
    array = jnp().asarray(value)
    return array if array.dtype == dtype.numpy_dtype else array.astype(dtype.numpy_dtype)


def _fold(op: Operation, inputs: Sequence[Any]) -> list[Any] | None:
    """The outputs of an operation on constants, by the CPU's kernel; None where the program has to compute them.

    Raises:
        OpError: the kernel refuses the inputs.
    """
    if not inputs or not all(isinstance(value, np.ndarray) for value in inputs):
        return None
    is_of_numbers = all(dtype not in _HANDLES for dtype in op.signature.output_types)
    if op.op_def.is_stateful or not is_of_numbers or not _is_small(op, inputs):
        return None
    try:
        kernel = create_op_kernel(eager_device(), op.node_def)
    except NotFoundError:
        return None
    if not isinstance(kernel, FunctionKernel):
        return None
    with np.errstate(all="ignore"):
        found = kernel.function(*by_arg(inputs, kernel.properties.input_args))
    return [np.asarray(value) for value in flat_outputs(kernel, found)]


def _is_small(op: Operation, inputs: Sequence[Array]) -> bool:
    """Whether the outputs are no larger than a constant may be."""
    taken = sum(value.nbytes for value in inputs)
    for shape, dtype in zip(output_shapes(op, inputs), op.signature.output_types, strict=True):
        size = 0 if shape is None else math.prod(shape) * dtype.numpy_dtype.itemsize
        if size > _MOST_BYTES or (shape is None and taken > _SMALL):
            return False
    return taken <= _MOST_BYTES
