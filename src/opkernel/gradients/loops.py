"""The gradient of loops: a While that goes back through the turns.

The forward loop counts its turns, and puts the tensors that the gradient of each turn needs into
lists, which are further variables of the loop. The loop of the gradient takes the last elements of
the lists at each turn. Tensors that are the same in all turns are not kept: the loop of the
gradient takes them as they are.

A loop of TensorFlow 1, made of Enter, Merge, Switch, NextIteration and Exit, is given such variables, too. Variables
take part that lead from what gradients are with respect to, to what has gradients.

Source: TensorFlow python/ops/while_v2.py, python/ops/control_flow_state.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.gradients.body_gradient import (
    Body,
    BodyGradient,
    GradientGraph,
    Turn,
    called_body,
    gradient_name,
    new_function,
)
from opkernel.gradients.frames_and_contexts import FrameLoop, Level, in_frame_of, origin
from opkernel.gradients.gradient_nodes import (
    Gradient,
    as_dense,
    is_trainable,
    nodes,
    shape_of,
    zeros_like,
)
from opkernel.gradients.registry import Gradients
from opkernel.graph import (
    FuncGraph,
    FunctionBody,
    Operation,
    Tensor,
    TensorSpec,
    constant,
    placeholder,
)
from opkernel.graph.core.edges import reached
from opkernel.graph.edit.loop_variables import add_loop_variables
from opkernel.graph.inference.shape_refiner import facts_of
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.proto import AttrValue
from opkernel.types import DataType, PartialTensorShape

_INT32, _VARIANT = DataType.DT_INT32, DataType.DT_VARIANT
_COUNT = TensorSpec([], _INT32)
_LIST = TensorSpec([], _VARIANT)


class DifferentiableLoop(ABC):
    """A loop that can keep tensors of its turns.

    Args:
        body: One turn; the results are in the order of the arguments.
        variables: The arguments of a turn, with its results and the loop's inputs for them.
        stops: Tensors of the body that gradients do not pass.

    Attributes:
        body: One turn.
        constants: The tensors that are equal in all turns, with the loop's inputs for them.
        stops: Tensors of the body that gradients do not pass.
    """

    def __init__(
        self,
        body: Body,
        variables: Iterable[tuple[Tensor, Tensor, Tensor]],
        stops: Sequence[Tensor] = (),
    ) -> None:
        self.body = body
        self.constants = {
            argument: first for argument, result, first in variables if origin(result) is argument
        }
        self.stops = stops

    @abstractmethod
    def keep(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Have the loop count its turns, and keep tensors of the body in lists.

        Returns:
            The number of turns, and the lists with an element for each turn.
        """


class _WhileLoop(DifferentiableLoop):
    """A While node whose gradient is made."""

    body: FunctionBody

    def __init__(self, op: Operation) -> None:
        self._op = op
        self._inputs = op.inputs
        body = self._instance("body")
        super().__init__(body, zip(body.inputs, body.outputs, self._inputs, strict=True))
        for argument, first, last in zip(body.inputs, self._inputs, op.outputs, strict=True):
            known = facts_of(first)
            if (
                argument not in self.constants
            ):  # of which no more is known than the shape in all turns
                known = TensorFacts(facts_of(last).shape, known.held)
            body.graph.refiner.define(argument.op, known)

    def keep(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Have the loop count its turns, and keep tensors of the body in lists."""
        op, graph = self._op, self._op.graph
        with graph.as_default(), graph.control_dependencies(None), in_frame_of(self._inputs[0]):
            lists = empty_lists(tensors)
            first = [constant(0, _INT32), *lists]
        functions = {"body": self._new_body(tensors), "cond": self._new_condition(len(tensors))}
        shapes = [PartialTensorShape([]) for _ in first]
        add_loop_variables(op, first, shapes, functions)
        graph.put_in_order(graph.get_operations())  # its inputs may be newer
        turns, *kept = op.outputs[len(self._inputs) :]
        return turns, list(kept)

    def _new_body(self, tensors: Sequence[Tensor]) -> AttrValue:
        body = self.body
        with body.graph.as_default():
            count = placeholder(_INT32, [], name="turns")
            before = [placeholder(_VARIANT, [], name="list") for _ in tensors]
            after = [
                nodes.TensorListPushBack(handle, tensor)
                for handle, tensor in zip(before, tensors, strict=True)
            ]
            next_count = nodes.AddV2(count, 1)
        inputs = [*body.inputs, count, *before]
        outputs = [*body.outputs, next_count, *after]
        return new_function(body.graph, f"{body.name}_forward", inputs, outputs, body)

    def _new_condition(self, lists: int) -> AttrValue:
        body = self._instance("cond")
        with body.graph.as_default():
            types = [_INT32, *[_VARIANT] * lists]
            unused = [placeholder(dtype, [], name="unused") for dtype in types]
        inputs = [*body.inputs, *unused]
        return new_function(body.graph, f"{body.name}_forward", inputs, body.outputs, body)

    def _instance(self, attr: str) -> FunctionBody:
        return called_body(self._op, self._op.node_def.attr[attr].func, attr)


def empty_lists(tensors: Sequence[Tensor]) -> list[Tensor]:
    """A list for each tensor that is to be kept."""
    return [
        nodes.EmptyTensorList(_element_shape(tensor), -1, element_dtype=tensor.dtype.base)
        for tensor in tensors
    ]


def _element_shape(tensor: Tensor) -> Any:
    """The known part of a shape, in the form that list ops take."""
    dims = tensor.shape.dims
    if dims is None:
        return constant(-1, _INT32)
    return constant([-1 if size is None else size for size in dims], _INT32)


def zeros_of_shape(tensor: Tensor, like: Tensor | None = None) -> Tensor:
    """A gradient of zeros, for which not the whole tensor has to be kept; `like` has the form of one."""
    dtype = tensor.dtype.base
    if dtype in (DataType.DT_RESOURCE, _VARIANT):
        return zeros_like(tensor if like is None else like)
    zeros: Tensor = nodes.Fill(shape_of(tensor), constant(0, dtype))
    return zeros


def while_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradients of the first values of the variables, from those of the last values."""
    given = {index: as_dense(grad) for index, grad in enumerate(grads) if grad is not None}
    found = loop_gradient(_WhileLoop(op), given, op.get_attr("parallel_iterations"))
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
    turn = _TurnGraph(gradient_name(loop.body), loop)
    part = BodyGradient(loop.body, list(given), turn, loop.stops)
    found = {index: grad for index, grad in enumerate(part.found) if grad is not None}
    with turn.as_default():
        results = [
            found[index] if index in found else zeros_of_shape(loop.body.inputs[index], grad)
            for index, grad in part.grads.items()
        ]
    turns, lists = loop.keep(list(turn.lists))
    constants = [loop.constants[tensor] for tensor in turn.captures]
    variables = [constant(0, _INT32), turns, *given.values(), *lists, *constants]
    go_back = nodes.While if turn.is_stateful else nodes.StatelessWhile
    last = go_back(
        variables,
        cond=_condition(turn, variables),
        body=_body(turn, part, results),
        parallel_iterations=parallel_iterations,
    )
    return dict(zip(given, last[2:], strict=False))


class _TurnGraph(GradientGraph):
    """The gradient of one turn; the tensors of the turn come from lists.

    Attributes:
        lists: for each tensor that is kept, its list before and after the last element is taken.
    """

    def __init__(self, name: str, loop: DifferentiableLoop) -> None:
        super().__init__(name, loop.body.graph)
        self._constants = loop.constants
        self.lists: dict[Tensor, tuple[Tensor, Tensor]] = {}

    def capture_value(self, tensor: Tensor) -> Tensor:
        """The stand-in for a tensor: an argument, or the last element of a list."""
        return self._pop(tensor) if self.is_kept(tensor) else super().capture_value(tensor)

    def is_kept(self, tensor: Tensor) -> bool:
        """Whether a tensor changes from turn to turn."""
        return origin(tensor) not in self._constants

    def _pop(self, tensor: Tensor) -> Tensor:
        dtype = tensor.dtype.base
        if dtype == DataType.DT_RESOURCE:
            raise UnimplementedError(
                f"Gradients of a loop are not implemented where a turn makes a resource: '{tensor.name}'",
                node=tensor.op.name,
            )
        handle = self.add_input(_LIST, "list")
        with self.name_scope(None), self.control_dependencies(None):
            inputs, attrs = [handle, _element_shape(tensor)], {"element_dtype": dtype}
            after, value = self.create_op("TensorListPopBack", inputs, attrs=attrs).outputs
        value.set_shape(tensor.shape)
        self.lists[tensor] = handle, after
        return value


def _body(turn: _TurnGraph, part: BodyGradient, results: Sequence[Tensor]) -> AttrValue:
    """The body of the loop of the gradient: its variables are two counts, gradients, lists and constants."""
    count, turns = turn.add_input(_COUNT, "count"), turn.add_input(_COUNT, "turns")
    before, after = zip(*turn.lists.values(), strict=True) if turn.lists else ((), ())
    constants = turn.captures.values()
    with turn.as_default():
        next_count = nodes.AddV2(count, 1)
    inputs = [count, turns, *part.grads.values(), *before, *constants]
    outputs = [next_count, turns, *results, *after, *constants]
    return new_function(turn, turn.name, inputs, outputs)


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


def frame_loop_gradient(loop: FrameLoop, *grads: Gradient | None) -> Gradients:
    """The gradients of the inputs of a loop, from the gradients of its outputs."""
    last = _last_gradients(loop, grads)
    chosen = _on_paths(loop, set(last))
    given = {
        place: last[index] if index in last else zeros_of_shape(_last_value(loop, index))
        for place, index in enumerate(chosen)
    }
    iterations = loop.enters[0].get_attr("parallel_iterations")
    found = loop_gradient(_FrameLoop(loop, chosen), given, iterations) if chosen else {}
    by_input = {index: found[place] for place, index in enumerate(chosen)}
    return [by_input.get(index) for index in range(len(loop.inputs))]


class _FrameLoop(DifferentiableLoop):
    """A loop that keeps tensors of its turns in further variables; gradients are made of those chosen."""

    def __init__(self, loop: FrameLoop, chosen: Sequence[int]) -> None:
        self._loop = loop
        arguments, results = loop.arguments, loop.results
        inputs, outputs = ([tensors[i] for i in chosen] for tensors in (arguments, results))
        turn = Turn(loop.name, loop.graph, inputs, outputs)
        super().__init__(turn, zip(arguments, results, loop.inputs, strict=True), loop.stops)

    def keep(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Have the loop count its turns, and keep tensors of the body in lists."""
        loop = self._loop
        with loop.graph.as_default(), loop.graph.control_dependencies(None):
            pivot = nodes.Identity(loop.inputs[0])
            with loop.graph.control_dependencies([pivot.op]):
                zero: Tensor = constant(0, DataType.DT_INT32)
                empty = empty_lists(tensors)
            turns = loop.add_variable(zero, _next_count)
            turns.set_shape([])
            lists = [
                loop.add_variable(first, _appended(tensor))
                for first, tensor in zip(empty, tensors, strict=True)
            ]
        return turns, lists


def _next_count(count: Tensor) -> Tensor:
    with count.graph.control_dependencies([count.op]):  # the constant is in the loop, too
        following: Tensor = nodes.AddV2(count, 1)
        return following


def _appended(tensor: Tensor) -> Callable[[Tensor], Tensor]:
    """The operation that appends a tensor to a list."""
    return lambda handle: nodes.TensorListPushBack(handle, tensor)


def _last_gradients(loop: FrameLoop, grads: Sequence[Gradient | None]) -> dict[int, Tensor]:
    """The gradient of the last value of each variable that has one."""
    given = dict(zip(loop.outputs, grads, strict=True))
    last: dict[int, Tensor] = {}
    for index, variable in enumerate(loop.variables):
        found = [given[op.outputs[0]] for op in variable.exits]
        dense = [as_dense(grad) for grad in found if grad is not None]
        if dense:
            last[index] = dense[0] if len(dense) == 1 else nodes.AddN(dense)
    return last


def _last_value(loop: FrameLoop, index: int) -> Tensor:
    """The last value of a variable, or a constant."""
    if index >= len(loop.variables):
        return loop.inputs[index]
    variable = loop.variables[index]
    if variable.exits:
        return variable.exits[0].outputs[0]
    with loop.graph.as_default(), loop.graph.control_dependencies(None):
        last: Tensor = nodes.Exit(variable.switch.outputs[0])
        return last


def _on_paths(loop: FrameLoop, with_grads: set[int]) -> list[int]:
    """The variables and constants that gradients are with respect to, and that lead to gradients."""
    level = Level(loop.results, ())
    places = {argument: index for index, argument in enumerate(loop.arguments)}
    sources = [_dependencies(level, result, places) for result in loop.results]
    changing = {i for i, x in enumerate(loop.inputs) if loop.reached[i] and is_trainable(x)}
    needed = set(with_grads)
    for _ in sources:  # after as many rounds nothing changes any more
        changing |= {index for index, found in enumerate(sources) if found & changing}
        needed.update(*[sources[index] for index in needed])
    return sorted(changing & needed)


def _dependencies(level: Level, result: Tensor, arguments: Mapping[Tensor, int]) -> set[int]:
    """The numbers of the arguments that a result of a turn depends on."""

    def sources(tensor: Tensor) -> Iterable[Tensor]:
        unit = None if tensor in arguments else level.unit(tensor.op)
        return () if unit is None else filter(is_trainable, unit.inputs)

    return {arguments[tensor] for tensor in reached([result], sources) if tensor in arguments}
