"""XlaCompiler: from a graph or a function to a compiled program.

Source: TensorFlow compiler/tf2xla/xla_compiler.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError, as_op_error
from opkernel.graph import FunctionLibraryDefinition, Graph, Operation, Tensor, instantiate_function
from opkernel.graph.core.edges import Edge
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.graph.functions.function_body import FunctionBody
from opkernel.optimization.control_flow.functionalize_control_flow import functionalize
from opkernel.optimization.optimize import copy_to_optimize
from opkernel.proto import NameAttrList, NodeDef
from opkernel.runtime.engines.engine import ClusterArgument
from opkernel.types import DataType
from opkernel.xla.computation import (
    GENERATOR_SHAPE,
    OutputDescription,
    ResourceUpdate,
    XlaCompilationResult,
)
from opkernel.xla.graph_compiler import GraphCompiler
from opkernel.xla.jax_numpy import jax, jnp, wide_types
from opkernel.xla.op_registry import XlaOpRegistry, global_xla_op_registry
from opkernel.xla.resource import XlaResource


class XlaCompiler:
    """Compiles graphs and functions for arguments of known types and shapes.

    Args:
        device_type: The compilation device.
        registry: The kernels; those of the process if None.
        keeps_programs: Whether programs are kept on disk for other processes (`ProgramCache`).

    Raises:
        NotFoundError: there is no such compilation device.
        UnimplementedError: JAX is not installed.
    """

    def __init__(
        self,
        device_type: str = "XLA_CPU_JIT",
        *,
        registry: XlaOpRegistry | None = None,
        keeps_programs: bool = False,
    ) -> None:
        self._keeps_programs = keeps_programs
        self.registry = global_xla_op_registry() if registry is None else registry
        if not self.registry.is_backend(device_type):
            there = ", ".join(self.registry.backend_names())
            raise NotFoundError(f"There is no XLA backend {device_type!r}; there are {there}")
        self._device_type = device_type

    def compile_function(
        self,
        library: FunctionLibraryDefinition,
        function: str | NameAttrList,
        arguments: Sequence[ClusterArgument],
    ) -> XlaCompilationResult:
        """Compile a function.

        Args:
            library: Where the function, and those that it calls, are looked up.
            function: Its name, or the value of an attr that names it.
            arguments: What is known of each argument.

        Raises:
            NotFoundError: there is no such function, or an operation has no kernel for XLA.
            InvalidArgumentError: the arguments do not fit, or a value must be known at compile time.
            OpError: a kernel refuses its inputs.
        """
        body = instantiate_function(library, function)
        return self.compile_body(body, arguments)

    def compile_body(
        self, body: FunctionBody, arguments: Sequence[ClusterArgument]
    ) -> XlaCompilationResult:
        """Compile an instantiated function; raises as `compile_function` does."""
        edges = [(node, 0) for node in body.arg_nodes]
        return self._compile(arguments, edges, body.outputs, body.targets, body.name)

    def compile_graph(
        self,
        graph: Graph,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        arguments: Sequence[ClusterArgument],
        targets: Sequence[Operation] = (),
    ) -> XlaCompilationResult:
        """Compile what gives some tensors of a graph from others; raises as `compile_function` does."""
        edges = [(tensor.op, tensor.value_index) for tensor in feeds]
        return self._compile(arguments, edges, fetches, targets, "the graph")

    def export_graph(
        self,
        graph: Graph,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        arguments: Sequence[ClusterArgument],
    ) -> Any:
        """What gives some tensors from others as a `jax.export.Exported`, which JAX loads without opkernel.

        Raises:
            InvalidArgumentError: an argument is a variable; otherwise as `compile_function` does.
        """
        for one in arguments:
            if one.kind != "parameter":
                raise InvalidArgumentError(f"Only tensors can be exported, and {one.name} is none")
        edges = [(tensor.op, tensor.value_index) for tensor in feeds]
        _check_arguments(arguments, edges, "the graph")

        def program(*parameters: Any) -> list[Any]:
            given = dict(zip(edges, parameters, strict=True))
            results = GraphCompiler(self._device_type, self.registry).compile(fetches, (), given)
            return [jnp().asarray(value) for value in results]

        with wide_types():
            try:
                exported = jax("jax.export").export(jax().jit(program))
                return exported(*map(_spec, arguments))
            except Exception as error:
                raise without_notes(as_op_error(error)) from error.__cause__

    def compile_single_op(
        self, node_def: NodeDef, arguments: Sequence[ClusterArgument]
    ) -> XlaCompilationResult:
        """Compile one node by itself; raises as `compile_function` does."""
        inputs, op = single_op(node_def, arguments)
        return self.compile_graph(op.graph, inputs, op.outputs, arguments, [op])

    def _compile(
        self,
        arguments: Sequence[ClusterArgument],
        edges: Sequence[tuple[Operation, int]],
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        name: str,
    ) -> XlaCompilationResult:
        _check_arguments(arguments, edges, name)
        edges, fetches, targets = functional_form(edges, fetches, targets)
        mapping = [i for i, one in enumerate(arguments) if _is_parameter(one)]
        described: tuple[list[OutputDescription], list[ResourceUpdate]] = [], []
        compiler = GraphCompiler(self._device_type, self.registry)

        def program(*parameters: Any) -> list[Any]:
            given = dict(zip(mapping, parameters, strict=False))
            values = [_value_of(i, one, given) for i, one in enumerate(arguments)]
            if compiler.wants_generator:
                compiler.generator = XlaResource("generator", DataType.DT_INT64, parameters[-1])
            results = compiler.compile(fetches, targets, dict(zip(edges, values, strict=True)))
            outputs, computed = _described(fetches, results)
            updates, written = _updates(values)
            described[0][:], described[1][:] = outputs, updates
            return [*computed, *written]

        with wide_types():
            specs = [_spec(arguments[i]) for i in mapping]
            try:
                lowered = _lowered(compiler, program, specs)
                draws = compiler.wants_generator
                return XlaCompilationResult(
                    arguments, mapping, *described, lowered, draws, is_kept=self._keeps_programs
                )
            except Exception as error:
                raise without_notes(as_op_error(error)) from error.__cause__


def single_op(
    node_def: NodeDef, arguments: Sequence[ClusterArgument]
) -> tuple[list[Tensor], Operation]:
    """The operation of a node in a graph of its own, and its inputs.

    Raises:
        InvalidArgumentError: the node does not fit its op, or its inputs.
    """
    graph = Graph()
    inputs = [
        graph.create_op(
            "_Arg", name=f"arg{index}", attrs={"T": _declared(one), "index": index}
        ).outputs[0]
        for index, one in enumerate(arguments)
    ]
    attrs = {name: node_def.attr[name] for name in node_def.attr}
    make = partial(graph.create_op, node_def.op, inputs, attrs=attrs, name=node_def.name or None)
    try:
        return inputs, make()
    except InvalidArgumentError:  # few shape functions refuse unknown shapes
        for tensor, argument in zip(inputs, arguments, strict=True):
            if argument.kind != "resource":
                tensor.set_shape(argument.shape)
        return inputs, make()


def _lowered(compiler: GraphCompiler, program: Callable[..., Any], specs: list[Any]) -> Any:
    """A program before JAX compiles it; one that draws random numbers takes a generator as its last parameter.

    Its text has all parameters, also those that it does not use: programs of one text are compiled once.
    """
    jitted = jax().jit(program, keep_unused=True)
    try:
        return jitted.lower(*specs)
    except OpError:
        if not compiler.wants_generator:
            raise
    return jitted.lower(*specs, jax().ShapeDtypeStruct(GENERATOR_SHAPE, "int64"))


def without_notes(error: OpError) -> OpError:
    """An error without what JAX notes of its own traceback."""
    if hasattr(error, "__notes__"):
        del error.__notes__
    return error


def _check_arguments(
    arguments: Sequence[ClusterArgument], edges: Sequence[tuple[Operation, int]], name: str
) -> None:
    if len(arguments) != len(edges):
        raise InvalidArgumentError(
            f"{name} takes {len(edges)} arguments, {len(arguments)} are described"
        )
    for index, (argument, (op, output)) in enumerate(zip(arguments, edges, strict=True)):
        declared, given = op.outputs[output].dtype, _declared(argument)
        if given is not declared:
            raise InvalidArgumentError(
                f"Argument {index} of {name} is {declared.string}, and is described as {given.string}"
            )


def _declared(argument: ClusterArgument) -> DataType:
    """The type of the tensor that an argument is."""
    return DataType.DT_RESOURCE if argument.kind == "resource" else argument.dtype


def _is_parameter(argument: ClusterArgument) -> bool:
    """Whether the program takes the argument: strings, which only an Assert may have, stay outside."""
    if argument.kind == "parameter":
        return argument.dtype is not DataType.DT_STRING
    return argument.kind == "resource" and argument.is_initialized


def _spec(argument: ClusterArgument) -> Any:
    return jax().ShapeDtypeStruct(argument.shape, argument.dtype.numpy_dtype)


def _value_of(index: int, argument: ClusterArgument, given: dict[int, Any]) -> Any:
    """The value of an argument while the program is traced."""
    if argument.kind == "constant":
        return argument.constant
    if argument.kind == "parameter":
        return given.get(index)
    name = argument.name or f"argument {index}"
    dtype = argument.dtype if argument.is_initialized else None
    return XlaResource(name, dtype, given.get(index), index)


def _described(
    fetches: Sequence[Tensor], results: Sequence[Any]
) -> tuple[list[OutputDescription], list[Any]]:
    """What the results of a program are, and those that it computes."""
    outputs, computed = [], []
    for tensor, value in zip(fetches, results, strict=True):
        if isinstance(value, XlaResource) and value.arg_num >= 0:
            outputs.append(OutputDescription(DataType.DT_RESOURCE, (), None, value.arg_num))
        elif isinstance(value, np.ndarray):
            outputs.append(OutputDescription(tensor.dtype, value.shape, value))
        elif isinstance(value, jax().Array):
            outputs.append(OutputDescription(tensor.dtype, tuple(value.shape)))
            computed.append(value)
        else:
            raise InvalidArgumentError(
                f"{tensor.name} cannot leave a compiled program: it is a {type(value).__name__}"
            )
    return outputs, computed


def _updates(values: Sequence[Any]) -> tuple[list[ResourceUpdate], list[Any]]:
    """The resources that a program has written, and their values."""
    updates, written = [], []
    for index, value in enumerate(values):
        if isinstance(value, XlaResource) and value.is_written:
            array = jnp().asarray(value.value)
            assert value.dtype is not None
            updates.append(ResourceUpdate(index, value.dtype, tuple(array.shape)))
            written.append(array)
    return updates, written


def functional_form(
    feeds: Sequence[Edge], fetches: Sequence[Tensor], targets: Sequence[Operation]
) -> tuple[Sequence[Edge], Sequence[Tensor], Sequence[Operation]]:
    """The feeds, fetches and targets in a graph without loops and conditionals of TensorFlow 1, but those of odd form.

    Where there are none it is the graph that was given.
    """
    tensors = [op.outputs[index] for op, index in feeds]
    needed = prune_and_order(fetches, (), tensors)
    # What the results need anyway may become part of a loop; a target stays outside.
    others = [op for op in targets if op not in set(needed)]
    order = prune_and_order(fetches, others, tensors)
    if not _has_control_flow(order):
        return feeds, fetches, targets
    copied = copy_to_optimize(order[0].graph, fetches, tensors, others)
    functionalize(copied.editor)
    edges = [(tensor.op, tensor.value_index) for tensor in copied.feeds]
    return edges, copied.fetches, copied.targets


def _has_control_flow(order: Sequence[Operation]) -> bool:
    """Whether some operations, or functions that they call, are such control flow."""
    if any(op.type in LOW_LEVEL_CONTROL_FLOW for op in order):
        return True
    calls = [op for op in order if op.traits.calls or op.type in op.graph.function_library]
    if not calls:
        return False
    ops = calls[0].graph.function_library.ops_reached([op.message for op in calls])
    return not LOW_LEVEL_CONTROL_FLOW.isdisjoint(ops)
