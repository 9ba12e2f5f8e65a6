"""The gradient of loops: a While that goes back through the turns.

The forward loop counts its turns, and puts the tensors that the gradient of each turn needs into
lists, which are further variables of the loop. The loop of the gradient takes the last elements of
the lists at each turn. Tensors that are the same in all turns are not kept: the loop of the
gradient takes them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from opkernel.errors import UnimplementedError
from opkernel.gradients.contexts import origin
from opkernel.gradients.functional.body_gradient import (
    Body,
    BodyGradient,
    gradient_name,
    new_function,
)
from opkernel.gradients.functional.forward_loop import ForwardLoop, element_shape
from opkernel.gradients.functional.gradient_graph import GradientGraph
from opkernel.gradients.indexed_slices import Gradient, as_dense
from opkernel.gradients.node_methods import nodes
from opkernel.gradients.registry import Gradients
from opkernel.gradients.tensors import shape_of, zeros_like
from opkernel.graph import FuncGraph, Operation, Tensor, TensorSpec, constant
from opkernel.proto import AttrValue
from opkernel.types import DataType

_COUNT = TensorSpec([], DataType.DT_INT32)
_LIST = TensorSpec([], DataType.DT_VARIANT)


class DifferentiableLoop(Protocol):
    """A loop that can keep tensors of its turns."""

    @property
    def body(self) -> Body:
        """One turn; the results are in the order of the arguments."""

    @property
    def constants(self) -> Mapping[Tensor, Tensor]:
        """The tensors that are equal in all turns, with the loop's inputs for them."""

    @property
    def stops(self) -> Sequence[Tensor]:
        """Tensors of the body that gradients do not pass."""

    def keep(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Have the loop count its turns, and keep tensors of the body in lists.

        Returns:
            The number of turns, and the lists with an element for each turn.
        """


def while_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradients of the first values of the variables, from those of the last values."""
    given = {index: as_dense(grad) for index, grad in enumerate(grads) if grad is not None}
    found = loop_gradient(ForwardLoop(op), given, op.get_attr("parallel_iterations"))
    return [found.get(index) for index in range(len(grads))]


def loop_gradient(
    loop: DifferentiableLoop, given: Mapping[int, Tensor], parallel_iterations: int
) -> dict[int, Tensor]:
    """The loop of the gradient.

    Args:
        loop: the loop, which is made to keep the tensors that the gradient needs.
        given: the gradients of last values, by the number of the variable.
        parallel_iterations: how many turns may run side by side, for executors that can.

    Returns:
        The gradients of the first values of these variables.
    """
    turn = _Turn(loop, list(given))
    results = turn.results()
    turns, lists = loop.keep(list(turn.graph.lists))
    constants = [loop.constants[tensor] for tensor in turn.graph.captures]
    variables = [constant(0, DataType.DT_INT32), turns, *given.values(), *lists, *constants]
    body = turn.function(results)
    go_back = nodes.While if turn.graph.is_stateful else nodes.StatelessWhile
    last = go_back(
        variables,
        cond=_condition(turn.graph, variables),
        body=body,
        parallel_iterations=parallel_iterations,
    )
    return dict(zip(given, last[2:], strict=False))


class _TurnGraph(GradientGraph):
    """The gradient of one turn; the tensors of the turn come from lists.

    Attributes:
        constants: the tensors of the body that are the same in all turns.
        lists: for each tensor that is kept, its list before and after the last element is taken.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.constants: Mapping[Tensor, Any] = {}
        self.lists: dict[Tensor, tuple[Tensor, Tensor]] = {}

    def capture_value(self, tensor: Tensor) -> Tensor:
        """The stand-in for a tensor: an argument, or the last element of a list."""
        return self._pop(tensor) if self.is_kept(tensor) else super().capture_value(tensor)

    def is_kept(self, tensor: Tensor) -> bool:
        """Whether a tensor changes from turn to turn."""
        return origin(tensor) not in self.constants

    def _pop(self, tensor: Tensor) -> Tensor:
        dtype = tensor.dtype.base
        if dtype == DataType.DT_RESOURCE:
            raise UnimplementedError(
                f"Gradients of a loop are not implemented where a turn makes a resource: '{tensor.name}'",
                node=tensor.op.name,
            )
        handle = self.add_input(_LIST, "list")
        with self.name_scope(None), self.control_dependencies(None):
            inputs, attrs = [handle, element_shape(tensor)], {"element_dtype": dtype}
            after, value = self.create_op("TensorListPopBack", inputs, attrs=attrs).outputs
        value.set_shape(tensor.shape)
        self.lists[tensor] = handle, after
        return value


class _Turn:
    """The gradient of one turn as the body of a loop."""

    def __init__(self, loop: DifferentiableLoop, with_grads: Sequence[int]) -> None:
        body = loop.body
        self.graph = _TurnGraph(name=gradient_name(body), outer_graph=body.graph)
        self.graph.constants = loop.constants
        self._part = BodyGradient(body, with_grads, self.graph, loop.stops)

    def results(self) -> list[Tensor]:
        """The gradients of the variables before the turn; zeros where it does not need them."""
        with self.graph.as_default():
            return [self._gradient(index) for index in self._part.grads]

    def function(self, results: Sequence[Tensor]) -> AttrValue:
        """The body: its variables are two counts, gradients, lists and constants."""
        graph = self.graph
        count, turns = graph.add_input(_COUNT, "count"), graph.add_input(_COUNT, "turns")
        before, after = zip(*graph.lists.values(), strict=True) if graph.lists else ((), ())
        constants = graph.captures.values()
        with graph.as_default():
            next_count = nodes.AddV2(count, 1)
        inputs = [count, turns, *self._part.grads.values(), *before, *constants]
        outputs = [next_count, turns, *results, *after, *constants]
        return new_function(graph, graph.name, inputs, outputs)

    def _gradient(self, index: int) -> Tensor:
        variable, found = self._part.body.inputs[index], self._part.found[index]
        if found is not None:
            return found
        if variable.dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
            return zeros_like(self._part.grads[index])
        zeros: Tensor = nodes.Fill(shape_of(variable), constant(0, variable.dtype.base))
        return zeros


def _condition(turn: FuncGraph, variables: Sequence[Tensor]) -> AttrValue:
    """The condition of the loop of the gradient: as many turns as the forward loop took."""
    graph = FuncGraph(
        name=f"{turn.name}_condition",
        outer_graph=turn.outer_graph,
        function_library=turn.function_library,
    )
    inputs = [graph.add_input(TensorSpec(None, v.dtype.base), "variable") for v in variables]
    with graph.as_default():
        is_left = nodes.Less(inputs[0], inputs[1])
    return new_function(graph, graph.name, inputs, [is_left])
