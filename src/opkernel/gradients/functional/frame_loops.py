"""The gradient of loops of TensorFlow 1, made of Enter, Merge, Switch, NextIteration and Exit.

The loop is given further variables, which count its turns and keep tensors in lists; the gradient is a
While. Variables take part that lead from what gradients are with respect to, to what has gradients.

Source: TensorFlow python/ops/control_flow_state.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opkernel.gradients.contexts import origin
from opkernel.gradients.frame_loop import FrameLoop
from opkernel.gradients.frames import Level
from opkernel.gradients.functional.forward_loop import element_shape
from opkernel.gradients.functional.loops import loop_gradient
from opkernel.gradients.indexed_slices import Gradient, as_dense
from opkernel.gradients.node_methods import nodes
from opkernel.gradients.registry import Gradients
from opkernel.gradients.tensors import is_trainable, shape_of, zeros_like
from opkernel.graph import Graph, Operation, Tensor, constant
from opkernel.interrupts import contextmanager
from opkernel.types import DataType

_INT32 = DataType.DT_INT32


def frame_loop_gradient(loop: FrameLoop, *grads: Gradient | None) -> Gradients:
    """The gradients of the inputs of a loop, from the gradients of its outputs."""
    last = _last_gradients(loop, grads)
    chosen = _on_paths(loop, set(last))
    given = {
        place: last[index] if index in last else _zeros(_last_value(loop, index))
        for place, index in enumerate(chosen)
    }
    iterations = loop.enters[0].get_attr("parallel_iterations")
    found = loop_gradient(_Turns(loop, chosen), given, iterations) if chosen else {}
    by_input = {index: found[place] for place, index in enumerate(chosen)}
    return [by_input.get(index) for index in range(len(loop.inputs))]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One turn; of the variables and constants those whose gradients are made."""

    name: str
    graph: Graph
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]


class _Turns:
    """A loop that keeps tensors of its turns in further variables; see `functional.loops.Loop`."""

    def __init__(self, loop: FrameLoop, chosen: Sequence[int]) -> None:
        self._loop = loop
        arguments, results = loop.arguments, loop.results
        inputs, outputs = ([tensors[i] for i in chosen] for tensors in (arguments, results))
        self.body = _Turn(loop.name, loop.graph, inputs, outputs)
        self.constants: Mapping[Tensor, Tensor] = {
            argument: first
            for argument, result, first in zip(arguments, results, loop.inputs, strict=True)
            if origin(result) is argument
        }
        self.stops = loop.stops

    def keep(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Have the loop count its turns, and keep tensors of the body in lists."""
        loop = self._loop
        with loop.graph.as_default(), loop.graph.control_dependencies(None):
            pivot = nodes.Identity(loop.inputs[0])
            with _beside(pivot):
                zero: Tensor = constant(0, _INT32)
                empty = [
                    nodes.EmptyTensorList(element_shape(t), -1, element_dtype=t.dtype.base)
                    for t in tensors
                ]
            turns = loop.add_variable(zero, _next_count)
            turns.set_shape([])
            lists = [
                loop.add_variable(first, _appended(tensor))
                for first, tensor in zip(empty, tensors, strict=True)
            ]
        return turns, lists


@contextmanager
def _beside(tensor: Tensor) -> Iterator[None]:
    """Let constants be in the loop, and on the branch, that a tensor is in."""
    with tensor.graph.control_dependencies([tensor.op]):
        yield


def _next_count(count: Tensor) -> Tensor:
    with _beside(count):
        following: Tensor = nodes.AddV2(count, 1)
        return following


def _appended(tensor: Tensor) -> Callable[[Tensor], Tensor]:
    """The operation that appends a tensor to a list."""

    def append(handle: Tensor) -> Tensor:
        longer: Tensor = nodes.TensorListPushBack(handle, tensor)
        return longer

    return append


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


def _zeros(tensor: Tensor) -> Tensor:
    """A gradient of zeros, for which not the whole tensor has to be kept."""
    dtype = tensor.dtype.base
    if dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
        return zeros_like(tensor)
    zeros: Tensor = nodes.Fill(shape_of(tensor), constant(0, dtype))
    return zeros


def _on_paths(loop: FrameLoop, with_grads: set[int]) -> list[int]:
    """The variables and constants that gradients are with respect to, and that lead to gradients."""
    level = Level(loop.results, ())
    places = {argument: index for index, argument in enumerate(loop.arguments)}
    sources = [_dependencies(level, result, places) for result in loop.results]
    reached = {i for i, x in enumerate(loop.inputs) if loop.reached[i] and is_trainable(x)}
    needed = set(with_grads)
    for _ in sources:  # after as many rounds nothing changes any more
        reached |= {index for index, found in enumerate(sources) if found & reached}
        needed.update(*[sources[index] for index in needed])
    return sorted(reached & needed)


def _dependencies(level: Level, result: Tensor, arguments: Mapping[Tensor, int]) -> set[int]:
    """The numbers of the arguments that a result of a turn depends on."""
    found: set[int] = set()
    seen: set[Operation | FrameLoop] = set()
    waiting = [result]
    while waiting:
        tensor = waiting.pop()
        unit = level.unit(tensor.op)
        if tensor in arguments:
            found.add(arguments[tensor])
        elif unit is not None and unit not in seen:
            seen.add(unit)
            waiting += [source for source in unit.inputs if is_trainable(source)]
    return found
