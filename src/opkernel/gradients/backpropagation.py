"""Backpropagation: from the results back to the arguments, each operation once.

An operation's gradient function is called when the gradients of all its outputs are there. A loop of
TensorFlow 1 counts as one operation.

Source: TensorFlow python/ops/gradients_util.py (_PendingCount, _StopOps, _AggregatedGrads), core/common_runtime/gradients.cc.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.gradients.frames_and_contexts import FrameLoop, Level, Unit, is_loop_switch
from opkernel.gradients.gradient_nodes import (
    Gradient,
    IndexedSlices,
    as_dense,
    is_trainable,
    nodes,
    sum_of_slices,
    zeros_like,
)
from opkernel.gradients.registry import (
    GradientFunction,
    gradient_function_of,
    has_gradient_entry,
)
from opkernel.graph import Operation, Tensor, get_default_graph
from opkernel.graph.core.edges import reached
from opkernel.messages import short_repr
from opkernel.slots import Slot
from opkernel.types import DataType

Flows = Callable[[Tensor], bool]
"""Whether gradients pass through a tensor."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The operations on paths from `xs` to `ys`.

    Attributes:
        level: the operations and loops.
        between: the operations.
        pending: for each of them the number of its edges to others of them: of gradients that it
            waits for.
        ends: the units that gradients reach and do not pass.
    """

    level: Level
    between: dict[Unit, None]
    pending: Counter[Unit]
    ends: set[Unit]


def find_paths(
    xs: Sequence[Tensor], ys: Sequence[Tensor], stops: Sequence[Tensor], flows: Flows
) -> Paths:
    """The paths from `xs` to `ys`; gradients pass neither `xs` that depend on no other nor `stops`."""
    level = Level(ys, stops)
    first = [level.unit_of_argument(x) for x in xs]
    stopped = {stop.op for stop in stops}
    changing = reached(
        first,
        lambda unit: chain.from_iterable(map(level.consumers, filter(flows, unit.outputs))),
    )
    between = reached(
        [unit for y in ys if (unit := level.unit(y.op)) in changing],
        lambda unit: [] if unit in stopped else filter(changing.__contains__, level.sources(unit)),
    )
    pending: Counter[Unit] = Counter()
    for unit in between:
        if unit not in stopped:
            pending.update([source for source in level.sources(unit) if source in between])
    for unit in between:
        if isinstance(unit, FrameLoop):
            unit.reached = [level.unit(tensor.op) in between for tensor in unit.inputs]
    ends = {x for x in first if not any(pending[source] for source in level.sources(x))}
    return Paths(level, between, pending, ends | stopped)


def _tree(gradients: list[Tensor]) -> Tensor:
    """One after the other, so that each can be dropped early."""
    return reduce(lambda total, gradient: nodes.AddN([total, gradient]), gradients)


AGGREGATION_METHODS: dict[str, Callable[[list[Tensor]], Tensor]] = {
    "add_n": lambda gradients: nodes.AddN(gradients),
    "experimental_tree": _tree,
    "experimental_accumulate_n": _tree,
}
"""How gradients are added, by the names of TensorFlow's AggregationMethod."""


class Accumulation:
    """The gradients that were found so far, by tensor."""

    def __init__(self, method: str) -> None:
        """With a method of `AGGREGATION_METHODS`; ValueError if there is no such method."""
        if method not in AGGREGATION_METHODS:
            raise ValueError(
                f"aggregation_method must be one of {list(AGGREGATION_METHODS)}, not {short_repr(method)}"
            )
        self._add = AGGREGATION_METHODS[method]
        self._gradients: dict[Tensor, list[Gradient]] = {}

    def note(self, tensor: Tensor, gradient: Gradient) -> None:
        """Add to the gradient of a tensor."""
        self._gradients.setdefault(tensor, []).append(gradient)

    def total(self, tensor: Tensor) -> Gradient | None:
        """The gradient of a tensor; None where none was noted."""
        found = self._gradients.get(tensor)
        if found is None:
            return None
        if len(found) > 1:
            found[:] = [self._sum(found)]
        return found[0]

    def _sum(self, gradients: Sequence[Gradient]) -> Gradient:
        slices = [g for g in gradients if isinstance(g, IndexedSlices)]
        if len(slices) == len(gradients):
            return sum_of_slices(slices)
        return self._add([as_dense(gradient) for gradient in gradients])


# These stand on this module.
_CALL_BY_NAME_GRADIENT: Slot[GradientFunction] = Slot("gradient of a call by name")
_FRAME_LOOP_GRADIENT: Slot[GradientFunction] = Slot("gradient of a frame loop")


def _gradient_function(op: Unit) -> GradientFunction | None:
    """The registered gradient of an operation, or that of its loop or function."""
    if isinstance(op, FrameLoop):
        return _FRAME_LOOP_GRADIENT.get()
    if op.type not in op.graph.function_library or has_gradient_entry(op.type):
        return gradient_function_of(op)
    return _CALL_BY_NAME_GRADIENT.get()


@dataclass(frozen=True, slots=True)
class Rules:
    """The differences between backpropagation in graphs and in bodies of functions.

    Attributes:
        gradient_function: the gradient function of an operation, None where it has no gradient.
        flows: whether gradients pass through a tensor.
        fills: whether inputs that a gradient function gives no gradient have zeros as theirs, which
            go on to what the inputs depend on.
        aggregation_method: how gradients are added.
    """

    gradient_function: Callable[[Unit], GradientFunction | None] = _gradient_function
    flows: Callable[[Tensor], bool] = is_trainable
    fills: bool = False
    aggregation_method: str = "add_n"


def backpropagate(
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    grad_ys: Sequence[Gradient],
    stop_gradients: Sequence[Tensor] = (),
    rules: Rules | None = None,
) -> list[Gradient | None]:
    """The gradients of `ys`, weighted by `grad_ys`, by `xs`; None where no path leads.

    New nodes go to the default graph: that of the tensors, or one that captures from it.

    Raises:
        NotFoundError: an operation between has no gradient function.
        InvalidArgumentError: a gradient function gives gradients of the wrong number or shape.
    """
    rules = rules or Rules()
    return _Backpropagation(ys, xs, grad_ys, stop_gradients, rules).run()


class _Backpropagation:
    """One run of it; the state is what operations still wait for, and the gradients found."""

    def __init__(
        self,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        grad_ys: Sequence[Gradient],
        stop_gradients: Sequence[Tensor],
        rules: Rules,
    ) -> None:
        self._ys = ys
        self._xs = xs
        self._rules = rules
        self._paths = find_paths(xs, ys, stop_gradients, rules.flows)
        self._pending = self._paths.pending
        self._found = Accumulation(rules.aggregation_method)
        for y, gradient in zip(ys, grad_ys, strict=True):
            self._found.note(y, gradient)

    def run(self) -> list[Gradient | None]:
        """The gradients of the arguments."""
        level, between = self._paths.level, self._paths.between
        last = dict.fromkeys(level.unit(y.op) for y in self._ys)
        ready = deque(op for op in last if op in between and not self._pending[op])
        done = 0
        while ready:
            op = ready.popleft()
            done += 1
            self._pass(op)
            for source in () if op in self._paths.ends else level.sources(op):
                if source in between:
                    self._pending[source] -= 1
                    if not self._pending[source]:
                        ready.append(source)
        if done < len(between):
            raise UnimplementedError(
                "Gradients cannot pass through operations that depend on each other in a cycle"
            )
        return [self._found.total(x) for x in self._xs]

    def _pass(self, op: Unit) -> None:
        """Let the gradients of an operation's outputs pass to its inputs."""
        if op in self._paths.ends:
            return
        grads = [self._found.total(output) for output in op.outputs]
        if all(grad is None for grad in grads):
            return
        function = self._rules.gradient_function(op)
        with get_default_graph().name_scope(f"{op.name}_grad"):
            for tensor, gradient in zip(op.inputs, self._call(function, op, grads), strict=True):
                self._note(op, tensor, gradient)

    def _call(
        self, function: GradientFunction | None, op: Unit, grads: list[Gradient | None]
    ) -> Sequence[Gradient | None]:
        """The result of a gradient function; missing gradients of outputs are zeros."""
        inputs = op.inputs
        if function is None:
            return [None] * len(inputs)
        takes_zeros = isinstance(op, Operation) and not is_loop_switch(op)
        for index, output in enumerate(op.outputs):
            if grads[index] is None and takes_zeros and self._rules.flows(output):
                grads[index] = zeros_like(output)
        found = _as_sequence(op, function(op, *grads))
        if len(found) != len(inputs):
            raise InvalidArgumentError(
                f"the gradient function of {op.type} gave {len(found)} gradients for the {len(inputs)} inputs of "
                f"'{op.name}'; it must give one for each input, in order, and None where an input has no gradient",
                node=op.name,
                op=op.type,
            )
        return found

    def _note(self, op: Unit, tensor: Tensor, gradient: Gradient | None) -> None:
        if gradient is None and self._rules.fills and tensor.op in self._paths.between:
            gradient = None if tensor.dtype == DataType.DT_RESOURCE else zeros_like(tensor)
        if gradient is not None:
            _set_shape(op, tensor, gradient)
            self._found.note(tensor, gradient)


def _as_sequence(op: Unit, found: Any) -> Sequence[Gradient | None]:
    """The result of a gradient function as a sequence, also if it is one gradient."""
    gradients: Sequence[Any] = found if isinstance(found, list | tuple) else [found]
    for gradient in gradients:
        if not (gradient is None or isinstance(gradient, Tensor | IndexedSlices)):
            raise TypeError(
                f"the gradient function of {op.type} gave a {type(gradient).__name__}; gradients "
                f"are tensors of the graph, IndexedSlices or None"
            )
    return gradients


def _set_shape(op: Unit, tensor: Tensor, gradient: Gradient) -> None:
    """Give a gradient the shape of its tensor, as far as the shape is known."""
    if isinstance(gradient, IndexedSlices) or tensor.dtype == DataType.DT_RESOURCE:
        return
    shape = tensor.shape
    if shape == gradient.shape:
        return
    try:
        gradient.set_shape(shape)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"The gradient of shape {gradient.shape} for the input '{tensor.name}' of '{op.name}' "
            f"does not have the shape of the input, {shape}",
            node=op.name,
            op=op.type,
        ) from error
