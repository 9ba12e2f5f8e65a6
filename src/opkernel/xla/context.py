"""XlaOpKernel: a kernel that adds a node to the program which is compiled; and its context.

A tensor is a NumPy array where its value is known at compile time, an array of JAX where it is known when the
program runs, an XlaResource for a resource, and a pytree of arrays for a variant.

Source: TensorFlow compiler/tf2xla/xla_op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph import FunctionBody, Operation
from opkernel.kernel import Arg, OpKernel
from opkernel.proto import NameAttrList
from opkernel.types import Array, DataType
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.resource import XlaResource

if TYPE_CHECKING:
    from opkernel.xla.graph_compiler import GraphCompiler


def not_constant(kernel: OpKernel, place: int) -> InvalidArgumentError:
    """The error for an input that must be known at compile time, and is not."""
    node, args = kernel.node_def, kernel.properties.input_args
    name = next(arg.name for arg in args if arg.start <= place < arg.stop)
    return InvalidArgumentError(
        f"Input {place} ({name}) to node `{node.name}` with op {node.op} must be a compile-time constant, "
        "and is known only when the program runs"
    )


class XlaOpKernelContext:
    """What a kernel for XLA computes with.

    Attributes:
        kernel: The kernel.
        operation: The node in its graph.
        inputs: The inputs, flat.
        outputs: The outputs, flat; None where the kernel has set none yet.
        compiler: Compiles the graph that the node stands in.
    """

    def __init__(
        self, kernel: OpKernel, operation: Operation, inputs: Sequence[Any], compiler: GraphCompiler
    ) -> None:
        self.kernel, self.operation = kernel, operation
        self.inputs, self.compiler = inputs, compiler
        self.outputs: list[Any] = [None] * kernel.num_outputs

    @property
    def num_inputs(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    @property
    def xp(self) -> Any:
        """The array namespace of the program's tensors."""
        return jnp()

    def _arg(self, name: str) -> Arg:
        for arg in self.kernel.properties.input_args:
            if arg.name == name:
                return arg
        raise InvalidArgumentError(f"{self.kernel.node_def.op} has no input {name!r}")

    def _place(self, which: int | str) -> int:
        return which if isinstance(which, int) else self._arg(which).start

    def input(self, which: int | str) -> Any:
        """An input as an array of the program."""
        value = self.inputs[self._place(which)]
        return jnp().asarray(value) if isinstance(value, np.ndarray) else value

    def input_list(self, name: str) -> list[Any]:
        """The inputs of a list argument as arrays of the program."""
        arg = self._arg(name)
        return [self.input(place) for place in range(arg.start, arg.stop)]

    def input_shape(self, which: int | str) -> tuple[int, ...]:
        """The shape of an input."""
        return tuple(self.inputs[self._place(which)].shape)

    def input_type(self, which: int | str) -> DataType:
        """The type of an input."""
        return self.kernel.input_types[self._place(which)]

    def is_constant(self, which: int | str) -> bool:
        """Whether the value of an input is known at compile time."""
        return isinstance(self.inputs[self._place(which)], np.ndarray)

    def constant_input(self, which: int | str) -> Array:
        """The value of an input that must be known at compile time.

        Raises:
            InvalidArgumentError: it is known only when the program runs.
        """
        place = self._place(which)
        value = self.inputs[place]
        if isinstance(value, np.ndarray):
            return value
        raise not_constant(self.kernel, place)

    def constant_input_as_int(self, which: int | str) -> int:
        """The value of a scalar of integers that must be known at compile time."""
        return int(self.constant_input(which).reshape(()).item())

    def constant_input_as_shape(self, which: int | str) -> tuple[int, ...]:
        """The value of a vector of integers that must be known at compile time."""
        return tuple(int(size) for size in self.constant_input(which).reshape(-1))

    def resource(self, which: int | str) -> XlaResource:
        """The resource that an input stands for.

        Raises:
            InvalidArgumentError: it is a tensor.
        """
        value = self.inputs[self._place(which)]
        if not isinstance(value, XlaResource):
            raise InvalidArgumentError(
                f"Input {which} of {self.kernel.node_def.name} is no resource of the program"
            )
        return value

    def call_function(
        self, function: NameAttrList, inputs: Sequence[Any], generator: XlaResource | None = None
    ) -> list[Any]:
        """The results of a function of the graph's library.

        Args:
            function: The function.
            inputs: Its arguments.
            generator: Where it draws random numbers; where the caller does, if it is None.
        """
        return self.compiler.compile_function(self.operation.graph, function, inputs, generator)

    def function_body(self, function: NameAttrList) -> FunctionBody:
        """A function of the graph's library as a graph."""
        return self.compiler.function_body(self.operation.graph, function)

    def set_output(self, index: int, value: Any) -> None:
        """Set an output: an array of the program, a NumPy array or scalar for a constant, a resource or a structure."""
        self.outputs[index] = np.asarray(value) if isinstance(value, np.generic) else value


class XlaOpKernel(OpKernel):
    """A kernel for XLA as a class, for what a function cannot say: calls of functions, inputs that may be constants.

    Subclasses take an OpKernelConstruction, read their attrs from it, and override `compile`.
    """

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the outputs of the node from its inputs in `ctx`."""
        raise NotImplementedError(f"{type(self).__name__} does not override compile")
